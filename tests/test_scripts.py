"""Tests of `scripts/campaign.py`, with a short program in place of auxmod, and of what other scripts are asked for."""

import importlib.util
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CAMPAIGN = Path(__file__).parents[1] / "scripts" / "campaign.py"
SAVES = """
import signal, sys, time
def save(*_):
    print("saved"); sys.exit(130)
signal.signal(signal.SIGTERM, save)
print("begun", flush=True)
time.sleep(30)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "table1.jsonl").write_text("a row\n")
    return tmp_path


def campaign(place: Path, program: str, items: str, *options: str, out: str = "new") -> "subprocess.Popen[str]":
    """Start a campaign of two workers that pass their arguments to this Python program."""
    (place / "list").write_text(items)
    (place / "program.py").write_text(program)
    command = [sys.executable, CAMPAIGN, "list", out, "--workers", "2", "--program", f"{sys.executable} program.py"]
    return subprocess.Popen([*command, *options], cwd=place, stdout=subprocess.PIPE, text=True)


def test_a_campaign_runs_every_line_beside_what_is_stored(place: Path) -> None:
    program = "import sys; print('begun'); print(*sys.argv[1:]); sys.exit(sys.argv[2] == 'gap')"
    process = campaign(place, program, "# the first\ntable1a --n 8\n\ngap --q 97,31\n")
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert sorted(said.splitlines()) == [
        "done: table1a --n 8 (new/table1a+--n+8.log)",
        "failed, exit code 1: gap --q 97,31 (new/gap+--q+97,31.log): reproduce gap --q 97,31 --results new",
    ]
    assert (place / "new" / "stored-table1.jsonl").read_text() == "a row\n"
    assert (place / "new" / "table1a+--n+8.log").read_text() == "begun\nreproduce table1a --n 8 --results new\n"


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM, None])
def test_a_campaign_lets_all_save_and_begins_no_more(place: Path, asked: signal.Signals | None) -> None:
    limit = ("--seconds", "2") if asked is None else ()
    process = campaign(place, SAVES, "table1a\ntable1b\nconfigs\n", *limit)
    logs = [place / "new" / f"{name}.log" for name in ("table1a", "table1b")]
    deadline = time.monotonic() + 30
    while not all(log.exists() and "begun" in log.read_text() for log in logs) and time.monotonic() < deadline:
        time.sleep(0.05)
    if asked is not None:
        process.send_signal(asked)
    said, _ = process.communicate(timeout=20)
    assert process.returncode == 130
    assert sorted(said.splitlines()) == [f"stopped: {log.stem} (new/{log.name})" for log in logs]
    assert [log.read_text() for log in logs] == ["begun\nsaved\n"] * 2
    assert not (place / "new" / "configs.log").exists()


def test_what_workers_printed_is_kept_where_a_campaign_goes_on(place: Path) -> None:
    for _ in range(2):
        campaign(place, "print('said')", "gap\n").communicate(timeout=60)
    assert (place / "new" / "gap.log").read_text() == "said\nsaid\n"


def test_a_worker_that_is_stopped_before_it_can_save_has_not_failed(place: Path) -> None:
    process = campaign(place, "import time; time.sleep(30)", "table1a\n", "--seconds", "0.5")
    said, _ = process.communicate(timeout=20)
    assert (process.returncode, said) == (130, "stopped: table1a (new/table1a.log)\n")


def test_a_campaign_that_breaks_leaves_no_worker_behind(place: Path) -> None:
    """The campaign breaks because the second worker's log cannot be written."""
    (place / "new" / "gap.log").mkdir(parents=True)
    process = campaign(place, "import time; time.sleep(2); open('went-on', 'w')", "table1a\ngap\n")
    process.communicate(timeout=60)
    assert process.returncode == 1
    time.sleep(4)
    assert not (place / "went-on").exists()


def test_a_campaign_into_the_stored_results_copies_nothing(place: Path) -> None:
    process = campaign(place, "", "gap\n", out="results")
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert sorted(path.name for path in (place / "results").iterdir()) == ["gap.log", "table1.jsonl"]


def test_without_results_here_those_of_the_source_tree_are_stored(place: Path) -> None:
    (place / "results" / "table1.jsonl").unlink()
    (place / "results").rmdir()
    campaign(place, "", "gap\n").communicate(timeout=60)
    tree = CAMPAIGN.parents[1] / "results"
    stored = {path.name.removeprefix("stored-"): path.read_bytes() for path in (place / "new").glob("stored-*")}
    assert stored == {path.name: path.read_bytes() for path in tree.glob("*.jsonl")}
    assert "headline.jsonl" in stored


def test_items_that_are_nearly_alike_have_logs_of_their_own(place: Path) -> None:
    items = ["a b", "a-b", "'a b'", "a+b", "a%20b", "a/b"]
    campaign(place, "import sys; print(sys.argv[2:-2])", "\n".join(items)).communicate(timeout=60)
    logs = [path.read_text() for path in (place / "new").glob("*.log")]
    assert sorted(logs) == sorted(f"{shlex.split(item)}\n" for item in items)


@pytest.mark.parametrize(
    ("script", "options", "words"),
    [
        ("mutants", ["nosuch"], "no file that is mutated is called nosuch: name some of src/auxmod/problem/labels.py"),
        ("mutants", ["labels", "nosuch"], "is called nosuch:"),
        ("mutants", ["labels", "--sample", "0"], "--sample is 0, but must be 1 or more"),
        ("reliability", ["nosuch"], "there is no part nosuch: name some of kills, faults"),
        ("reliability", ["page", "nosuch"], "there is no part nosuch:"),
    ],
)
def test_a_part_that_does_not_exist_is_a_sentence(script: str, options: list[str], words: str) -> None:
    command = [sys.executable, CAMPAIGN.with_name(f"{script}.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["none", "new"], "there is no file none"),
        (["list", "new", "--workers", "0"], "--workers is 0, but must be 1"),
        (["list", "new", "--program", "no-such"], "--program is 'no-such', which cannot be run here"),
    ],
)
def test_a_campaign_that_cannot_be_is_a_sentence(place: Path, options: list[str], words: str) -> None:
    (place / "list").write_text("gap\n")
    done = subprocess.run([sys.executable, CAMPAIGN, *options], cwd=place, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (place / "new").exists()


@pytest.mark.parametrize(("code", "ended"), [(0, 0), (1, 1)])
def test_an_install_whose_tests_fail_is_no_good_one(code: int, ended: int, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("install_check", CAMPAIGN.with_name("install_check.py"))
    assert spec is not None
    assert spec.loader is not None
    monkeypatch.syspath_prepend(CAMPAIGN.parent)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "build", lambda place: (place / "a.whl", place / "a.tar.gz"))
    monkeypatch.setattr(script, "tried", lambda place, package: {"demo": True, "hint": True})
    monkeypatch.setattr(script, "tested", lambda place, sdist: {"code": code})
    monkeypatch.setattr(sys, "argv", ["install_check.py", "--tests"])
    assert script.main() == ended
