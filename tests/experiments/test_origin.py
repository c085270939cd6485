"""Tests of provenance: what a result says about where it came from."""

import shlex

import pytest

from auxmod.experiments.origin import provenance


def test_a_command_can_be_typed_again_and_names_no_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = ["sweep", "--results=/home/me/secret/s.jsonl", "--config", "/home/me/a b.toml", "--moduli", "1,2;1,3"]
    monkeypatch.setattr("sys.argv", ["auxmod", *typed, "--out", "runs/mine", "--shared", "/home/me/here//", "/"])
    command = "auxmod sweep --results=s.jsonl --config 'a b.toml' --moduli '1,2;1,3' --out runs/mine --shared here /"
    assert provenance(device="cpu", precision="fp32", seconds=0.5)["command"] == command


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("/a/x.npz,/b/y.npz,z.npz", "x.npz,y.npz,z.npz"),
        ("--data=/a/x.npz,/b/y.npz", "--data=x.npz,y.npz"),
        ("sqlite:////home/me/s.db", "sqlite:///s.db"),
        ("sqlite:///runs/s.db", "sqlite:///runs/s.db"),
        ("mysql://me:secret@host/db", "mysql://me:***@host/db"),
        ("postgresql://host/db?user=me&password=secret&port=1", "postgresql://host/db?user=me&password=***&port=1"),
        ("postgresql://me@office:secret@host:1/db", "postgresql://me@office:***@host:1/db"),
        ("mysql://host/db?passwd=secret&sslpassword=more", "mysql://host/db?passwd=***&sslpassword=***"),
        ("mysql://host/db?sslkey=/home/me/k.pem&sslmode=require", "mysql://host/db?sslkey=k.pem&sslmode=require"),
        ("postgresql://me@office@host:5432/db", "postgresql://me@office@host:5432/db"),
    ],
)
def test_a_command_keeps_neither_directories_nor_passwords(
    monkeypatch: pytest.MonkeyPatch, typed: str, kept: str
) -> None:
    monkeypatch.setattr("sys.argv", ["auxmod", "search", typed])
    assert provenance(device="cpu", precision="fp32", seconds=0.5)["command"] == shlex.join(["auxmod", "search", kept])


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
