"""Test that the modules that docs/architecture.md marks "(no torch)" import no torch."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def without_torch() -> list[str]:
    """The modules that the page marks "(no torch)"; a marked directory counts as one."""
    (tree,) = re.findall(r"^src/auxmod/$(.*?)^```$", (ROOT / "docs/architecture.md").read_text(), re.M | re.S)
    package, found = "", []
    for line in tree.splitlines():
        if folder := re.match(r"  (\w+)/ ", line):
            package = folder[1]
        if line.endswith("(no torch)"):
            files = re.findall(r"\b(\w+)\.py\b", line)
            found += [f"auxmod.{package}.{file}" for file in files] or [f"auxmod.{package}"]
    return found


def test_whatever_is_said_to_need_no_torch_is_held_to_it() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (held,) = (contract["source_modules"] for contract in contracts if contract["type"] == "forbidden")
    said = without_torch()
    assert {"auxmod.reporting", "auxmod.problem.rows", "auxmod.serving.server"} <= set(said)
    assert set(said) <= set(held)
    script = f"import {', '.join(held)}, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
