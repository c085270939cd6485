"""What a result says of where it came from."""

import pytest

from auxmod.experiments.origin import provenance


def test_a_command_can_be_typed_again_and_names_no_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = ["sweep", "--results=/home/me/secret/s.jsonl", "--config", "/home/me/a b.toml", "--moduli", "1,2;1,3"]
    monkeypatch.setattr("sys.argv", ["auxmod", *typed, "--out", "runs/mine"])
    command = "auxmod sweep --results=s.jsonl --config 'a b.toml' --moduli '1,2;1,3' --out runs/mine"
    assert provenance(device="cpu", precision="fp32", seconds=0.5)["command"] == command
