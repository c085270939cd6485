"""`make pages`: write what README.md and docs/ show of results/."""

from pathlib import Path

from auxmod.reporting.documents.pages import stale

if __name__ == "__main__":
    for block in stale(Path.cwd(), write=True):
        print(f"updated {block}")
