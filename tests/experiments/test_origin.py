"""What a result says of where it came from."""

import pytest

from auxmod.experiments.origin import provenance


def test_a_command_can_be_typed_again_and_names_no_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = ["sweep", "--results=/home/me/secret/s.jsonl", "--config", "/home/me/a b.toml", "--moduli", "1,2;1,3"]
    monkeypatch.setattr("sys.argv", ["auxmod", *typed, "--out", "runs/mine", "--shared", "/home/me/here//", "/"])
    command = "auxmod sweep --results=s.jsonl --config 'a b.toml' --moduli '1,2;1,3' --out runs/mine --shared here /"
    assert provenance(device="cpu", precision="fp32", seconds=0.5)["command"] == command


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("/home/me/.venv/bin/auxmod", "auxmod train"),
        ("/home/me/src/auxmod/__main__.py", "auxmod train"),
        ("/home/me/other/__main__.py", "python __main__.py train"),
        ("mine.py", "python mine.py train"),
        ("", "python train"),
    ],
)
def test_a_program_of_ones_own_is_not_called_auxmod(monkeypatch: pytest.MonkeyPatch, program: str, said: str) -> None:
    monkeypatch.setattr("sys.argv", [program, "train"])
    assert provenance(device="cpu", precision="fp32", seconds=0.5)["command"] == said
