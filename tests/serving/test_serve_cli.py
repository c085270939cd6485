"""Tests of `auxmod serve`: it prints its address, ends on Ctrl-C, and says in one sentence why it cannot start."""

import errno
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from auxmod.cli import main

NO_ADDRESS, UNKNOWN = os.strerror(errno.EADDRNOTAVAIL), "Name or service not known"
HOST = "give --host an address or a name of this machine, such as 127.0.0.1, or 0.0.0.0 for all its addresses.\n"


def test_it_prints_its_address_answers_and_ends_on_ctrl_c(store: Path) -> None:
    command = [sys.executable, "-m", "auxmod", "serve", str(store), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        address = process.stdout.readline().split()[-1]
        with urlopen(address, timeout=30) as page:
            assert b"<title>auxmod</title>" in page.read()
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=30)
    assert (process.returncode, error) == (0, "")
    assert out.endswith("Ended.\n")


def test_serving_imports_no_torch(store: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from auxmod.serving.server import Server; "
        f"Server(Path({str(store)!r}), '127.0.0.1', 0).server_close(); print('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "False\n"


def test_a_busy_port_is_a_sentence(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", str(store), "--port", str(port)]) == 2
    said = capsys.readouterr().err
    assert said == (
        f"Error: Nothing can be served at 127.0.0.1, port {port} (Address already in use): "
        "choose another --port, or 0 for any free one.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "There is no store nowhere"),
        ([".", "--port", "70000"], "--port is 70000, but must lie in 0..65535."),
        ([".", "--port", "-1"], "--port is -1"),
        ([".", "--host", "192.0.2.1"], f"Nothing can be served at 192.0.2.1, port 8097 ({NO_ADDRESS}): {HOST}"),
        ([".", "--host", "no such host"], f"Nothing can be served at no such host, port 8097 ({UNKNOWN}): {HOST}"),
        ([".", "--host", "localhost:80"], HOST),
        ([".", "--host", ".é"], HOST),
        ([".", "--host", ""], f"--host is empty: {HOST}"),
    ],
)
def test_wrong_use_is_a_sentence(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["serve", *arguments]) == 2
    assert said in capsys.readouterr().err
