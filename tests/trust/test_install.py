"""Tests of the installation: the core works alone, and a missing extra is named with the command that installs it.

The licences of all dependencies must also be compatible with ours.
"""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import dependencies
import pytest
from desk import call

from tiny import flags

ROOT = Path(__file__).parents[2]

USED = ("plot", "report", "search", "cluster", "wandb", "tensorboard", "trackio")
MISSING: list[tuple[str, str, list[str]]] = [
    ("plot", "matplotlib", ["figure", "rho", "--out", "x.png"]),
    ("plot", "matplotlib", ["bench", "--plot", "x.png"]),
    ("report", "plotly", ["report", "r.jsonl", "--out", "x.html"]),
    ("search", "optuna", ["search", *flags("--k", "2:5")]),
    ("cluster", "ray", ["sweep", *flags("--cluster", "local")]),
    ("wandb", "wandb", ["train", *flags("--track", "wandb")]),
    ("trackio", "trackio", ["train", *flags("--track", "trackio")]),
    ("tensorboard", "tensorboard", ["train", *flags("--track", "tensorboard")]),
]


@pytest.mark.parametrize(("extra", "module", "command"), MISSING)
def test_a_missing_extra_is_answered_by_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: str, module: str, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.jsonl").touch()
    for name in list(sys.modules):
        if name.split(".")[0] == module or name in BEHIND.get(module, ()):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    outcome = call(*command)
    assert outcome.code == 2, outcome
    assert f"pip install 'auxmod[{extra}]'" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["r.jsonl"]


BEHIND = {
    "tensorboard": ("torch.utils.tensorboard", "torch.utils.tensorboard.writer"),
    "optuna": ("auxmod.experiments.search", "auxmod.experiments.study"),
}
"""For a module, others that import it and may already have been loaded."""


def test_every_extra_that_a_user_may_lack_is_tried() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {extra for extra, _, _ in MISSING} == set(extras) - {"dev", "docs"}


CORE = """
import importlib.abc, sys
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {extras}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name.split(".")[0])
sys.meta_path.insert(0, Refuse())
from auxmod.cli import main
for command in {commands}:
    code = main(command)
    assert code == 0, (command, code)
"""


def test_the_core_needs_no_extra(tmp_path: Path) -> None:
    """Train, evaluate, predict, sweep and list, without any package that an extra installs."""
    extra = set(dependencies.needed(("dev",))) - set(dependencies.needed())
    modules = {name.replace("-", "_") for name in extra} | {"matplotlib", "optuna", "plotly", "ray"}
    commands = [
        ["train", *flags("--out", f"{tmp_path}/run", "--quiet")],
        ["eval", f"{tmp_path}/run", "--samples", "10"],
        ["predict", f"{tmp_path}/run", "1", "2", "3", "4"],
        ["sweep", *flags("--results", f"{tmp_path}/s.jsonl", "--quiet", "--seed", "0:1")],
        ["runs", "list", str(tmp_path)],
        ["theory", "--n", "4", "--q", "7"],
        ["table", "table1b", "--results", f"{tmp_path}/s.jsonl"],
    ]
    script = CORE.format(extras=sorted(modules), commands=commands)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_licences_of_all_dependencies_go_with_ours(record_property: Any) -> None:
    found = {name: dependencies.licence(one) for name, one in dependencies.needed(("dev",)).items()}
    assert {"torch", "numpy", "optuna", "matplotlib", "ray"} <= found.keys()
    record_property("licences", len(found))
    ours = {name: text for name, text in found.items() if not name.startswith(dependencies.OF_TORCH)}
    odd = {name: text for name, text in ours.items() if not dependencies.is_allowed(text)}
    assert odd.keys() <= dependencies.LOOKED_INTO.keys(), odd
    assert not odd.keys() & dependencies.needed(USED).keys()  # none of them is among what users install
