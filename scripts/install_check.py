"""Check a clean install: build the wheel and the sdist, install each into an environment of its own, and try it.

`python scripts/install_check.py [--tests]` prints JSON. Only the core's dependencies are linked in, from the
environment that runs this, so that a large torch is not downloaded again. The sdist's tests, which --tests runs, also
see that environment's other packages, through a .pth file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from dependencies import needed

ROOT = Path(__file__).parents[1]
HERE = Path(sysconfig.get_paths()["purelib"])


def sh(*command: object, cwd: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "AUXMOD_"))}
    return subprocess.run([str(word) for word in command], cwd=cwd, env=clean, capture_output=True, text=True, **more)


def environment(place: Path) -> Path:
    """Make a clean virtual environment; return its python."""
    sh(sys.executable, "-m", "venv", place, cwd=place.parent, check=True)
    return place / "bin" / "python"


def packages(python: Path) -> Path:
    found = sh(python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])", cwd=ROOT, check=True)
    return Path(found.stdout.strip())


def link_core(python: Path) -> list[str]:
    """Link the distributions that the core needs, and no others, into an environment; return their names."""
    target, core = packages(python), needed()
    for one in core.values():
        for top in {Path(str(file)).parts[0] for file in one.files or [] if not str(file).startswith("..")}:
            if (HERE / top).exists() and not (target / top).exists():
                (target / top).symlink_to(HERE / top)
    return sorted(core)


def build(place: Path) -> tuple[Path, Path]:
    """Build the wheel and the sdist from the files that git does not ignore; return their paths."""
    python = environment(place / "builder")
    sh(python, "-m", "pip", "install", "--quiet", "hatchling", cwd=place, check=True)
    sh(python, "-m", "hatchling", "build", "-d", place / "dist", cwd=ROOT, check=True)
    return next((place / "dist").glob("*.whl")), next((place / "dist").glob("*.tar.gz"))


def tried(place: Path, package: Path) -> dict[str, Any]:
    """Install the package with the core alone; run the demo, and a search, which must name the extra it lacks."""
    place.mkdir()
    python = environment(place / "venv")
    core = link_core(python)
    options = ["--no-deps", "--quiet"]
    done = sh(python, "-m", "pip", "install", *options, package, cwd=place)
    assert done.returncode == 0, done.stderr
    demo = sh(place / "venv" / "bin" / "auxmod", "demo", "--quick", "--quiet", "--json", cwd=place, timeout=600)
    assert demo.returncode == 0, demo.stderr
    search = sh(place / "venv" / "bin" / "auxmod", "search", "--n", "4", "--q", "7", cwd=place)
    hint = "pip install 'auxmod[search]'" in search.stderr
    return {"package": package.name, "core": len(core), "demo": len(json.loads(demo.stdout)["rows"]) == 3, "hint": hint}


def tested(place: Path, sdist: Path) -> dict[str, Any]:
    """Run the tests in the sdist against the package installed from it."""
    with tarfile.open(sdist) as archive:
        archive.extractall(place / "source", filter="data")
    source, python = next((place / "source").iterdir()), environment(place / "tests")
    done = sh(python, "-m", "pip", "install", "--no-deps", "--quiet", sdist, cwd=place)
    assert done.returncode == 0, done.stderr
    (packages(python) / "others.pth").write_text(f"{HERE}\n")
    told = place / "told.txt"  # a file, as a process left behind by a test would hold a pipe open
    with open(told, "w") as out:
        options = ["-n", "2", "--dist", "loadfile", "--tb", "line", "--ignore", "tests/docs"]  # these need more tools
        code = subprocess.run([str(python), "-m", "pytest", *options], cwd=source, stdout=out, stderr=out, timeout=3000)
    lines = told.read_text().strip().splitlines()
    return {
        "tests": lines[-1],
        "failed": [line for line in lines if line.startswith(("FAILED", "ERROR"))],
        "code": code.returncode,
    }


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        wheel, sdist = build(place)
        found: dict[str, Any] = {"wheel": tried(place / "wheel", wheel), "sdist": tried(place / "sdist", sdist)}
        if "--tests" in sys.argv:
            found["tests"] = tested(place, sdist)
    print(json.dumps(found, indent=1))
    failed = found.get("tests", {}).get("code", 0) != 0
    return int(failed or not all(found[kind]["demo"] and found[kind]["hint"] for kind in ("wheel", "sdist")))


if __name__ == "__main__":
    sys.exit(main())
