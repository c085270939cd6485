"""Mutation testing: check that a test notices each small change to the arithmetic. `make mutants`

In a copy of the tree, every comparison, operator and constant, and a few functions, of `problem/` and
`learning/objective.py` are changed, one at a time; the tests of that file must then fail. Mutants that survive are
printed, and recorded with --out. Those that tests/trust/mutants.json explains are equivalent: no test could tell them
from the original. Each mutant runs in a fork of a process that has imported the libraries.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import itertools
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PROBLEM = "src/auxmod/problem"
TARGETS = {
    f"{PROBLEM}/labels.py": ["tests/problem/test_labels.py"],
    f"{PROBLEM}/metrics.py": ["tests/problem/test_metrics.py"],
    f"{PROBLEM}/rng.py": ["tests/problem/test_rng.py"],
    f"{PROBLEM}/sampling.py": ["tests/problem/test_sampling.py"],
    f"{PROBLEM}/rows.py": ["tests/problem/test_rows.py"],
    f"{PROBLEM}/laws.py": ["tests/problem/test_laws.py"],
    f"{PROBLEM}/theory.py": ["tests/problem/test_theory.py"],
    f"{PROBLEM}/summary.py": ["tests/problem/test_theory.py"],
    "src/auxmod/learning/objective.py": ["tests/learning/test_objective.py", "tests/learning/test_rungs.py"],
}
KNOWN = ROOT / "tests" / "trust" / "mutants.json"
SECONDS, BYTES = 40, 3 * 2**30
"""Limits of processor time and memory; a mutant that exceeds one counts as noticed."""

OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
NAMES = {
    "min": "max", "max": "min", "floor": "ceil", "ceil": "floor", "cos": "sin", "sin": "cos", "all": "any",
    "any": "all", "minimum": "maximum", "rsqrt": "sqrt", "logsumexp": "sum", "argmax": "argmin", "mean": "sum",
}  # fmt: skip


Site = tuple[ast.AST, str, int | None]
"""Where a node is: its parent, the field, and the index in a list. All uses of an operator share one node."""


def sites(holder: ast.AST) -> Iterator[Site]:
    """The places of all nodes that may be changed.

    Not those in annotations, decorators, targets and f-strings, nor `strict` of a zip, which only checks lengths.
    """
    if isinstance(holder, ast.JoinedStr) or (isinstance(holder, ast.keyword) and holder.arg == "strict"):
        return
    for name, value in ast.iter_fields(holder):
        if name in ("annotation", "returns", "decorator_list", "target", "ctx"):
            continue
        children = enumerate(value) if isinstance(value, list) else [(None, value)]
        for at, child in children:
            if isinstance(child, ast.AST):
                yield holder, name, at
                yield from sites(child)


def changes(tree: ast.Module) -> Iterator[tuple[int, str, str, str]]:
    """Yield (line number, changed line before, the same after, whole text after) for each mutant."""
    before = ast.unparse(tree).splitlines()
    for number, site in enumerate(sites(tree)):
        if changed(at_site(*site)) is None:
            continue
        mutant = copy.deepcopy(tree)
        holder, name, at = next(itertools.islice(sites(mutant), number, None))
        value, other = getattr(holder, name), changed(at_site(holder, name, at))
        if at is None:
            setattr(holder, name, other)
        else:
            value[at] = other
        after = ast.unparse(mutant).splitlines()
        differing = [(a.strip(), b.strip()) for a, b in zip(before, after, strict=False) if a != b]
        yield getattr(other, "lineno", getattr(holder, "lineno", 0)), *differing[0], "\n".join(after) + "\n"


def at_site(holder: ast.AST, name: str, at: int | None) -> ast.AST:
    value: Any = getattr(holder, name)
    return value if at is None else value[at]  # type: ignore[no-any-return]


def changed(node: ast.AST) -> ast.AST | None:
    """The node to put in a node's place; None if there is nothing to change."""
    if type(node) in OTHER:
        return OTHER[type(node)]()
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        new = not node.value if isinstance(node.value, bool) else node.value + 1
        return ast.copy_location(ast.Constant(new), node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        return node.operand
    if isinstance(node, ast.Attribute) and node.attr in NAMES:
        return ast.copy_location(ast.Attribute(node.value, NAMES[node.attr], node.ctx), node)
    if isinstance(node, ast.Name) and node.id in NAMES:
        return ast.copy_location(ast.Name(NAMES[node.id], node.ctx), node)
    return None


def noticed(tree: Path, tests: list[str]) -> bool:
    """Run the tests in a child process; return whether they fail or do not end in time."""
    pid = os.fork()
    if pid == 0:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        os.chdir(tree)
        sys.path[:0] = [str(tree / "src")]
        sys.dont_write_bytecode = True
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        import pytest

        quiet = ["-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
        os._exit(int(pytest.main(["-x", "--timeout", "0", *quiet, *tests])))
    ends = time.monotonic() + 10 * SECONDS  # for a mutant that only waits
    while time.monotonic() < ends:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) != 0
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return True


def run(tree: Path, names: list[str], sample: int) -> Iterator[tuple[str, int, str, str, bool]]:
    for name in names:
        path = tree / name
        whole, tests = path.read_text(), [test for test in TARGETS[name] if (tree / test).exists()]
        assert not noticed(tree, tests), f"The tests of {name} fail as it is."
        for number, (line, before, after, text) in enumerate(changes(ast.parse(whole))):
            if number % sample == 0:
                path.write_text(text)
                yield name, line, before, after, noticed(tree, tests)
        path.write_text(whole)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="files, or parts of their names; without, all")
    parser.add_argument("--sample", type=int, default=1, help="only each so-many-th mutant")
    parser.add_argument("--out", type=Path, help="record the outcome in this JSON file")
    chosen = parser.parse_args()
    unknown = [part for part in chosen.names if not any(part in name for name in TARGETS)]
    if unknown:
        parser.error(f"no file that is mutated is called {', '.join(unknown)}: name some of {', '.join(TARGETS)}.")
    if chosen.sample < 1:
        parser.error(f"--sample is {chosen.sample}, but must be 1 or more.")
    names = [name for name in TARGETS if not chosen.names or any(part in name for part in chosen.names)]
    import hypothesis  # noqa: F401
    import numpy  # noqa: F401
    import pytest  # noqa: F401
    import scipy.stats  # noqa: F401
    import torch

    torch.set_num_threads(1)
    explained = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    counts = {name: {"mutants": 0, "killed": 0, "equivalent": 0} for name in names}
    survivors = []
    with tempfile.TemporaryDirectory() as place:
        tree = Path(place) / "tree"
        shutil.copytree(
            ROOT, tree, ignore=shutil.ignore_patterns(".*", "runs", "carry", "__pycache__", "build", "dist")
        )
        conftest = tree / "tests" / "conftest.py"  # no shrinking: it does not matter which case fails
        quick = "derandomize=True, phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate]"
        conftest.write_text(conftest.read_text().replace("derandomize=True", quick))
        for name, line, before, after, killed in run(tree, names, chosen.sample):
            counts[name]["mutants"] += 1
            if killed:
                counts[name]["killed"] += 1
            elif f"{before} → {after}" in explained.get(Path(name).name, {}):
                counts[name]["equivalent"] += 1
            else:
                survivors.append({"file": name, "line": line, "before": before, "after": after})
                print(f"{name}:{line}\n    {before}\n    {after}", flush=True)
            if chosen.out:
                with contextlib.suppress(OSError):
                    chosen.out.write_text(
                        json.dumps({"files": counts, "survivors": survivors}, indent=1, ensure_ascii=False)
                    )
    print(json.dumps(counts, indent=1))
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
