"""The shell scripts, with a program in auxmod's place."""

import os
import subprocess
from pathlib import Path

CAMPAIGN = Path(__file__).parents[1] / "scripts" / "campaign.sh"


def campaign(tmp_path: Path, program: str, lines: str, seconds: int) -> str:
    """What it says; ``program`` is what each line is given to, in shell."""
    (tmp_path / "program").write_text(f"#!/bin/sh\n{program}\n")
    (tmp_path / "program").chmod(0o755)
    (tmp_path / "list").write_text(lines)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "table1.jsonl").write_text("a row\n")
    environment = os.environ | {"AUXMOD": "./program"}
    command = [CAMPAIGN, "list", "runs/new", str(seconds), "2"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def test_a_campaign_runs_every_line_beside_what_is_stored(tmp_path: Path) -> None:
    said = campaign(tmp_path, 'echo "$@"; test "$2" != gap', "# the first\ntable1a --n 8\n\ngap --q 97,31\n", 50)
    assert sorted(said.splitlines()) == ["gap --q 97,31 : 1", "table1a --n 8 : done"]
    new = tmp_path / "runs" / "new"
    assert (new / "stored-table1.jsonl").read_text() == "a row\n"
    assert (new / "table1a-n-8.log").read_text() == "reproduce table1a --n 8 --results runs/new\n"


def test_a_campaign_asks_all_to_stop_and_begins_no_more(tmp_path: Path) -> None:
    asked = 'trap "echo saved; exit 130" TERM; sleep 10 & wait'
    said = campaign(tmp_path, asked, "table1a\ntable1b\nconfigs\n", 2)
    assert sorted(said.splitlines()) == ["table1a : stopped", "table1b : stopped"]
    new = tmp_path / "runs" / "new"
    assert sorted(path.name for path in new.glob("*.log")) == ["table1a.log", "table1b.log"]
    assert (new / "table1a.log").read_text() == "saved\n"
