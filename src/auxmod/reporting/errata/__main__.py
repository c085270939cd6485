"""Bring a document's block of findings up to date: python -m auxmod.reporting.errata docs/paper.md"""

from __future__ import annotations

import sys
from pathlib import Path

from auxmod.reporting import docs
from auxmod.reporting.errata import COMMAND, findings, markdown

if __name__ == "__main__":
    print("updated" if docs.update(Path(sys.argv[1]), COMMAND, markdown(findings())) else "up to date")
