"""What a result was made on: versions, commit, device, command. Standard library only."""

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
    """What a result was made on. ``members`` is how many runs shared the device in one ensemble."""
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


_ABSOLUTE = re.compile(r"(^|^--[\w-]+=|,|:///|[?&]\w+=)/(?:[^,&]*/)?([^/,&]+)/*(?=[,&]|$)")
"""An absolute path: alone, after a flag, in a list of paths, or in the address of a database or its options."""


def _command(program: str = "", *arguments: str) -> str:
    """The command as typed, without passwords or the machine's directories: of an absolute path the last part stays."""
    ours = Path(program).name == "auxmod" or Path(program).parts[-2:] == ("auxmod", "__main__.py")
    words = [_ABSOLUTE.sub(r"\1\2", hidden(word)) for word in arguments]
    begun = ["auxmod"] if ours else ["python", *filter(None, [Path(program).name])]  # at a prompt: no name
    return shlex.join([*begun, *words])


def hidden(text: str) -> str:
    """The text with *** for the passwords in any address: after a user's name, which may have an @, or by name."""
    return re.sub(r"(://[^:/\s]*:)[^@\s]*(?=@)|([?&]\w*(?:pass|pwd|secret|token)\w*=)[^&\s]*", r"\1\2***", text)


@functools.cache
def commit() -> str | None:
    """The commit of the source tree this runs from, with a + if the package was changed since; None if there is none.

    `AUXMOD_COMMIT` names it if the tree was copied without its history.
    """
    if named := os.environ.get("AUXMOD_COMMIT"):
        return named
    here = Path(__file__).parents[1]

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", __file__)  # fails if the tree around it does not track this file
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return None
