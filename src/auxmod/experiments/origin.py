"""On what a result was made: versions, commit, device, command. Standard library only."""

from __future__ import annotations

import functools
import os
import platform
import re
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from auxmod import __version__


def provenance(*, device: str, precision: str, seconds: float, members: int = 1) -> dict[str, Any]:
    """On what a result was made. ``members`` is how many runs shared the device in one ensemble."""
    return {
        "auxmod": __version__,
        "commit": commit(),
        "torch": metadata.version("torch"),
        "numpy": metadata.version("numpy"),
        "python": platform.python_version(),
        "device": device,
        "precision": precision,
        "members": members,
        "seconds": round(seconds, 3),
        "command": _command(*sys.argv),
    }


def _command(program: str = "", *arguments: str) -> str:
    """What was typed, without the machine's directories: an absolute path is shortened to its last part."""
    ours = Path(program).name == "auxmod" or Path(program).parts[-2:] == ("auxmod", "__main__.py")
    words = [re.sub(r"^(--[\w-]+=)?/(?:.*/)?([^/]+)/*$", r"\1\2", word) for word in arguments]
    begun = ["auxmod"] if ours else ["python", *filter(None, [Path(program).name])]  # at a prompt it has no name
    return shlex.join([*begun, *words])


@functools.cache
def commit() -> str | None:
    """The commit of the source tree this runs from, with a + where it was changed; None where it is not one.

    `AUXMOD_COMMIT` names it where the tree was copied without its history.
    """
    if named := os.environ.get("AUXMOD_COMMIT"):
        return named
    here = Path(__file__).parents[1]

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", __file__)  # fails where the tree around it is another's
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return None
