"""One claim of the paper, checked: where it is, what it says, the number it gives and the right one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["wrong", "rough", "right"]
"""wrong: false, or contradicted by the paper itself; rough: an approximation or a claim stronger than its numbers."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """`printed` is the paper's number, or its formula evaluated as printed; `computed` is our number."""

    where: str
    """Section, proposition or table, as the paper numbers them."""
    claim: str
    printed: str
    computed: str
    verdict: Verdict = "wrong"
