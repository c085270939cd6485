"""Tests that a model, run or results file from a stranger runs no code, and causes no write outside its place."""

import ast
import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from desk import call
from safetensors.torch import save as to_bytes

import auxmod
from auxmod.errors import UserError
from auxmod.experiments import claims
from auxmod.experiments.results_file import Results, result_row
from auxmod.files import read_json, sealed, write_json
from tiny import flags, tiny

SOURCE = Path(auxmod.__file__).parent
FORBIDDEN = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib", "yaml"}
CALLS = {"eval", "exec", "compile", "__import__", "torch.load", "torch.save", "torch.hub.load", "os.system"}


class Mine:
    """An object that leaves a trace when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.trace,))


def imported(tree: ast.AST) -> dict[str, str]:
    """What every imported name stands for: np for numpy, Path for pathlib.Path."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found


def called(tree: ast.AST, stands_for: dict[str, str]) -> list[tuple[str, ast.Call]]:
    """All calls, each with the full name of its function, whatever it was imported as."""
    found = []
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        first, dot, rest = ast.unparse(node.func).partition(".")
        found.append((stands_for.get(first, first) + dot + rest, node))
    return found


def test_nothing_in_the_package_unpickles_or_runs_what_it_reads() -> None:
    sources = list(SOURCE.rglob("*.py"))
    assert len(sources) > 50
    for path in sources:
        tree = ast.parse(path.read_text())
        names = imported(tree)
        calls = called(tree, names)
        assert not {name.split(".")[0] for name in names.values()} & FORBIDDEN, path
        assert not {*names.values(), *(name for name, _ in calls)} & CALLS, path
        loads = [ast.unparse(node) for name, node in calls if name == "numpy.load"]
        assert all("allow_pickle=False" in load for load in loads), path


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    auxmod.train(tiny(), out="run")
    return tmp_path / "run"


def test_a_pickle_is_not_read_whatever_it_is_called(run: Path) -> None:
    trace = run.parent / "trace"
    harmful = pickle.dumps(Mine(trace))
    pickle.loads(harmful)
    assert trace.exists()  # the attack itself works
    trace.unlink()
    (run / "model.safetensors").write_bytes(harmful)
    assert call("eval", "run").code == 2
    torch.save({"x": Mine(trace)}, run / "model.safetensors")
    assert call("eval", "run").code == 2
    array = np.empty(1, dtype=object)
    array[0] = Mine(trace)
    np.savez("x.npz", x=array)
    outcome = call("predict", "run", "--file", "x.npz")
    assert outcome.code == 2
    assert not trace.exists()


def test_a_configuration_that_would_fill_the_memory_is_refused_at_once(run: Path) -> None:
    """The shapes are compared before anything of that size is allocated."""
    for huge in ({"layers": 10**9}, {"hidden": 10**12}, {"width": 2**40}):
        config = auxmod.build(**vars_of(tiny()) | huge)
        write_json(run / "config.json", sealed(config.to_dict()))
        tensors = {"embed.weight": torch.zeros(1)}
        (run / "model.safetensors").write_bytes(to_bytes(tensors, metadata={"run": config.hash}))
        with pytest.raises(UserError, match="does not hold the model"):
            auxmod.load(run)


def vars_of(config: Any) -> dict[str, Any]:
    from auxmod.settings import flatten

    return {k: v for k, v in flatten(config).items() if k != "data_sha256"}


def test_links_in_a_run_are_not_written_through(run: Path) -> None:
    """Resuming a stranger's run leaves alone the files that its links point to."""
    (run / "result.json").unlink()
    outside = {}
    for name in ("metrics.jsonl", "provenance.json", "result.json", "model.safetensors", "config.json"):
        target = run.parent / f"outside-{name}"
        if (run / name).exists():
            shutil.copy(run / name, target)
            (run / name).unlink()
            outside[target] = target.read_bytes()
        os.symlink(target, run / name)
    (run / ".metrics.jsonl.x").symlink_to(next(iter(outside)))
    assert call("train", "--resume", "--out", "run", "--quiet").code == 0
    assert {path: path.read_bytes() for path in outside} == outside
    assert not (run.parent / "outside-result.json").exists()


def test_removing_a_run_follows_no_links(run: Path) -> None:
    target = run.parent / "mine"
    target.mkdir()
    (target / "file").write_text("mine")
    (run / "model.safetensors").unlink()
    (run / "model.safetensors").symlink_to(target / "file")
    assert call("runs", "rm", "run", "--yes").code == 0
    assert (target / "file").read_text() == "mine"
    auxmod.train(tiny(), out="run")
    (run / "deep").symlink_to(target)
    assert call("runs", "rm", "run", "--yes").code == 2


def test_a_results_file_from_elsewhere_cannot_lead_a_sweep_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / "mine"
    mine.mkdir()
    for name in ("apt.lock", "0123456789abcdef.lock", "notes.json"):
        (mine / name).write_text("mine")
    command = ["sweep", *flags("--results", "s.jsonl"), "--quiet"]
    Path("s.jsonl.d").symlink_to(mine)
    outcome = call(*command)
    assert outcome.code == 2
    assert "is a link" in outcome.err
    assert {path.name for path in mine.iterdir()} == {"apt.lock", "0123456789abcdef.lock", "notes.json"}
    Path("s.jsonl.d").unlink()
    Path("s.jsonl.d").write_text("mine")
    outcome = call(*command)
    assert (outcome.code, Path("s.jsonl.d").read_text()) == (2, "mine")
    assert "is a file where a directory must be" in outcome.err
    Path("s.jsonl.d").unlink()
    Path("s.jsonl.d").mkdir()
    Path("s.jsonl.d/apt.lock").write_text("not ours")
    victim = tmp_path / "victim"
    victim.write_text("mine")
    lock = claims.directory_of(Path("s.jsonl")) / (claims.sha256(tiny().hash.encode())[:16] + claims.LOCK)
    lock.symlink_to(victim)
    call(*command)
    assert victim.read_text() == "mine"
    assert Path("s.jsonl.d/apt.lock").read_text() == "not ours"


def test_names_and_sentences_from_files_cannot_command_the_terminal(run: Path) -> None:
    made = read_json(run / "provenance.json") | {"command": "auxmod \x1b]0;owned\x07\x1b[2J[red]"}
    made.pop("sum")
    write_json(run / "provenance.json", sealed(made))
    Results(Path("r.jsonl")).append([result_row(tiny(seed=5), None, {}, failed="\x1b[2J \x9b31m [link=x]y")])
    for words in (("show", "run"), ("show", tiny(seed=5).hash, "--store", "r.jsonl")):
        outcome = call("runs", *words)
        assert outcome.code == 0
        assert not any(c in outcome.out for c in "\x1b\x07\x9b")
        assert "[red]" in outcome.out or "[link=x]y" in outcome.out


def test_data_that_a_configuration_names_must_be_what_it_was(run: Path) -> None:
    """A stranger's run may name any path; the file there is only read, and used only if it is the same data."""
    Path("secret").write_text("mine")
    plain = tiny().to_dict()
    plain["training"] |= {"data": str(Path("secret").absolute()), "data_sha256": "0" * 64}
    (run / "result.json").unlink()
    (run / "state.safetensors").unlink()
    (run / "model.safetensors").unlink()
    write_json(run / "config.json", sealed(plain))
    outcome = call("train", "--resume", "--out", "run", "--quiet")
    assert outcome.code == 2
    assert "cannot be read as an .npz file" in outcome.err
    assert Path("secret").read_text() == "mine"
    assert json.loads((run / "config.json").read_text())["training"]["data"].endswith("secret")
