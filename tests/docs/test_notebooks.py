"""Tests that the notebooks run from top to bottom, and are kept without outputs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    out, program = tmp_path / "done.ipynb", Path(sys.executable).with_name("jupyter-execute")
    quick = os.environ | {"NOTEBOOK_QUICK": "1", "IPYTHONDIR": str(tmp_path)}
    command = [program, f"--output={out}", path]
    done = subprocess.run(command, cwd=tmp_path, env=quick, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    cells = json.loads(out.read_text())["cells"]
    drawn = [cell for cell in cells if any("image/png" in output.get("data", {}) for output in cell.get("outputs", []))]
    assert len(drawn) >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


def test_there_are_two() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first_steps", "inside_a_model"]
