"""All dependencies of auxmod's core or of its extras, direct and indirect, as installed here, and their licences."""

from __future__ import annotations

import re
from importlib import metadata

ALLOWED = (
    "MIT",
    "BSD",
    "Apache",
    "Python Software Foundation",
    "PSF",
    "ISC",
    "MPL",
    "Mozilla",
    "HPND",
    "Unlicense",
    "Zlib",
)
"""Words in the names of licences that put no conditions on an Apache-2.0 program that depends on the package."""

LOOKED_INTO = {"docutils": "public domain but for files it lists; the GPL's, for Emacs, is not in what is installed"}
"""Licences read by hand, because the metadata names several; these tools build the pages and are not distributed."""

OF_TORCH = ("nvidia-", "cuda-")
"""NVIDIA's libraries, which come with PyTorch's builds for its GPUs, under NVIDIA's terms. Nothing here names them."""


def needed(extras: tuple[str, ...] = (), root: str = "auxmod") -> dict[str, metadata.Distribution]:
    """The installed distributions that ``root`` with these extras depends on, directly or not; without ``root``."""
    found: dict[str, metadata.Distribution] = {}
    todo = [(root, extras)]
    seen: set[tuple[str, tuple[str, ...]]] = set()
    while todo:
        name, chosen = todo.pop()
        if (name, chosen) in seen:
            continue
        seen.add((name, chosen))
        try:
            one = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        if name != root:
            found[name] = one
        todo += [wanted for each in one.requires or [] if (wanted := _wanted(each, chosen))]
    return dict(sorted(found.items()))


def _wanted(requirement: str, chosen: tuple[str, ...]) -> tuple[str, tuple[str, ...]] | None:
    from packaging.requirements import Requirement

    parsed = Requirement(requirement)
    holds = parsed.marker is None or any(parsed.marker.evaluate({"extra": extra}) for extra in ("", *chosen))
    return (re.sub(r"[-_.]+", "-", parsed.name).lower(), tuple(sorted(parsed.extras))) if holds else None


def licence(one: metadata.Distribution) -> str:
    """A distribution's licence by its metadata: an expression, its classifiers, a text's first line, or `unknown`."""
    about = one.metadata
    if expression := about.get("License-Expression"):
        return str(expression)
    classified = [
        each.rpartition(" :: ")[2] for each in about.get_all("Classifier") or [] if each.startswith("License ::")
    ]
    if classified and classified != ["OSI Approved"]:
        return ", ".join(classified)
    return (about.get("License") or "unknown").strip().splitlines()[0][:60]


def is_allowed(text: str) -> bool:
    return any(word in text for word in ALLOWED) and not re.search(r"\b(A?GPL|LGPL)", text)
