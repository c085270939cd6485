"""What auxmod needs, as installed here: every distribution that its core or an extra leads to, and its licence."""

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
"""Licences, by a word of their name, that an Apache-2.0 program may depend on without conditions on itself."""

LOOKED_INTO = {"docutils": "public domain but for files it lists; the GPL's, for Emacs, is not in what is installed"}
"""Read by hand where the metadata names several licences: tools that build the pages, which nobody is given."""


def needed(extras: tuple[str, ...] = (), root: str = "auxmod") -> dict[str, metadata.Distribution]:
    """The distributions that ``root`` with these extras leads to, itself left out, as far as they are installed."""
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
    """As its metadata says it: an expression, a classifier, or the first line of a text."""
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
