"""`make pages`: bring the generated parts of README.md and docs/ up to date with results/."""

from pathlib import Path

from auxmod.reporting.documents.pages import stale

if __name__ == "__main__":
    for block in stale(Path.cwd(), write=True):
        print(f"updated {block}")
