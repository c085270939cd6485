"""Measure the figures of docs/reliability.md.

`python scripts/reliability.py [part …]` measures these parts, or all, into results/reliability.json, and then writes
the page's block from that file. `page` alone only writes the block.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import dependencies

from auxmod.experiments.origin import commit
from auxmod.files import write_json
from auxmod.reporting.documents.pages import replace_block
from auxmod.reporting.render import markdown_table

ROOT = Path(__file__).parents[1]
FILE, PAGE = ROOT / "results" / "reliability.json", ROOT / "docs" / "reliability.md"
COMMAND = "make reliability"
RECORDED = ("kills", "faults", "damaged", "cases", "load", "memory")
"""The properties that our tests record; Hypothesis and others record more, which are ignored."""
EXTRAS = ("plot", "report", "search", "cluster", "tensorboard")
"""The extras installed where the tests run. wandb and trackio are others' services, for which there are adapters."""


def told(script: str, *words: str) -> str:
    """What a script, which must succeed, prints."""
    done = subprocess.run([sys.executable, script, *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    return done.stdout


def tests(*words: str, **environment: str) -> dict[str, Any]:
    """Run tests, which must all pass; return how many did, and what they recorded (whole numbers summed)."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "told.xml"
        options = ["-p", "no:cacheprovider", "-o", "junit_family=xunit1", f"--junitxml={file}"]
        command = [sys.executable, "-m", "pytest", *options, *words]
        done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-4000:]
        suite = next(ElementTree.parse(file).iter("testsuite"))
    found: dict[str, Any] = {"tests": int(suite.attrib["tests"]) - int(suite.attrib["skipped"])}
    recorded = ((each.attrib["name"], each.attrib["value"]) for each in suite.iter("property"))
    for name, text in recorded:
        if name in RECORDED:
            value = json.loads(text.replace("'", '"'))
            found[name] = found.get(name, 0) + value if isinstance(value, int) else value
    return found


def kills() -> dict[str, Any]:
    return tests("tests/trust/test_crash.py", "-k", "killed", KILLS="150")["kills"]  # type: ignore[no-any-return]


def faults() -> dict[str, Any]:
    return tests("tests/trust/test_crash.py", "-k", "disk or memory or fit")


def damage() -> dict[str, Any]:
    return tests("tests/trust/test_damage.py", "tests/trust/test_strangers.py", BITS="30")


def fuzz() -> dict[str, Any]:
    return tests("tests/trust/test_fuzz.py", FUZZ="4")


def load() -> dict[str, Any]:
    return tests("tests/trust/test_growth.py", "-m", "soak", "-k", "runs")["load"]  # type: ignore[no-any-return]


def memory() -> dict[str, Any]:
    return tests("tests/trust/test_growth.py", "-m", "soak", "-k", "memory")["memory"]  # type: ignore[no-any-return]


def server() -> dict[str, Any]:
    return json.loads(told("tests/serving/test_load.py"))  # type: ignore[no-any-return]


def install() -> dict[str, Any]:
    return json.loads(told("scripts/install_check.py", "--tests"))  # type: ignore[no-any-return]


def licences() -> dict[str, Any]:
    core, every = dependencies.needed(), dependencies.needed(EXTRAS)
    return {"rows": [[name, one.version, dependencies.licence(one), name in core] for name, one in every.items()]}


def mutants() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "mutants.json"
        subprocess.run([sys.executable, "scripts/mutants.py", "--out", str(out)], cwd=ROOT, check=True)
        return json.loads(out.read_text())  # type: ignore[no-any-return]


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    each.__name__: each for each in (kills, faults, damage, fuzz, load, memory, server, install, licences, mutants)
}


def measure(names: Iterable[str]) -> None:
    found = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name in names:
        began = time.monotonic()
        outcome = PARTS[name]()
        made = {"seconds": round(time.monotonic() - began), "commit": commit()}
        made["date"] = datetime.datetime.now(datetime.UTC).date().isoformat()
        found[name] = {"found": outcome, "made": made}
        write_json(FILE, found)
        print(f"{name}: {made['seconds']} s", flush=True)


# -- the page -------------------------------------------------------------------------------------------------


def block(found: dict[str, Any]) -> str:
    """The page's block: what was tried, and the outcome."""
    part = {name: each["found"] for name, each in found.items()}
    return "\n\n".join(
        [
            markdown_table(("tried", "times", "came of it"), _tried(part)),
            "Seconds of processor time, with so many finished runs in a store:",
            _loads(part["load"]),
            "Mutants, that is, small changes to the arithmetic, and how many of them the tests notice:",
            _mutants(part["mutants"]["files"]),
            "Dependencies of the core and of the extras (`plot`, `report`, `search`, `cluster`, `tensorboard`):",
            _licences(part["licences"]["rows"]),
            _made(found),
        ]
    )


def _tried(part: dict[str, Any]) -> list[Sequence[str]]:
    killed, memory, suite = part["kills"], part["memory"], part["install"]["tests"]["tests"]
    server = part["server"]
    slower, share = 100 * server["slower"], 100 * server["share"]
    return [
        *(
            (
                f"kill −9 at a random moment: {kind}",
                f"{each['kills']:,}",
                "every file whole; the same results, each once",
            )
            for kind, each in killed.items()
        ),
        (
            "disk full or read-only from some write on, spread over a run and a sweep",
            f"{part['faults']['faults']:,}",
            "a sentence, exit 1; gone on with to the same files",
        ),
        (
            "a file damaged, then a command that reads it",
            f"{part['damage']['damaged']:,}",
            "as before, or refused by the file's name",
        ),
        (
            "arguments, settings, ranges, rows, inputs at random",
            f"{part['fuzz']['cases']:,}",
            "an answer that holds, or a sentence",
        ),
        (
            f"{memory['steps']:,} steps of a tiny model",
            "1",
            f"{memory['grown_mib']:.1f} MiB more than after 5,000 steps",
        ),
        (
            f"pages that poll `auxmod serve` for {server['seconds']:.0f} s, beside a run on the same core",
            f"{server['clients']}",
            f"a step's time: {slower:+.1f} %; the server takes {share:.1f} % of the core",
        ),
        (
            "clean install of wheel and sdist with the core alone",
            "2",
            f"`auxmod demo --quick` works; the sdist's tests: {suite}",
        ),
    ]


def _loads(load: dict[str, dict[str, float]]) -> str:
    counts = [name for name in next(iter(load.values())) if name != "ratio"]
    rows = [(name, *(f"{row[count]:.2f}" for count in counts), f"{row['ratio']:.1f}") for name, row in load.items()]
    return markdown_table(("", *(f"{int(count):,} runs" for count in counts), "ratio"), rows)


def _mutants(files: dict[str, dict[str, int]]) -> str:
    rows = [(f"`{name.removeprefix('src/auxmod/')}`", *map(str, each.values())) for name, each in files.items()]
    total = [str(sum(each[key] for each in files.values())) for key in ("mutants", "killed", "equivalent")]
    return markdown_table(("file", "mutants", "noticed", "equivalent, explained"), [*rows, ("together", *total)])


def _licences(rows: list[Any]) -> str:
    cells = [(name, version, text, "core" if core else "extra") for name, version, text, core in rows]
    return markdown_table(("package", "version", "licence", "for"), cells)


def _made(found: dict[str, Any]) -> str:
    parts = [f"{name} {each['made']['date']}, {each['made']['seconds']} s" for name, each in found.items()]
    return f"Measured on two processor cores, which others used as well: {'; '.join(parts)}."


def write_page() -> bool:
    """Update the page if every part has been measured; return whether anything changed."""
    found, before = json.loads(FILE.read_text()), PAGE.read_text()
    after = replace_block(before, COMMAND, block(found)) if found.keys() == PARTS.keys() else before
    PAGE.write_text(after)
    return after != before


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)}, or page; without, all")
    given = asked.parse_args().parts
    unknown = [name for name in given if name not in (*PARTS, "page")]
    if unknown:
        asked.error(f"there is no part {', '.join(unknown)}: name some of {', '.join(PARTS)}, or page.")
    measure(name for name in given or PARTS if name != "page")
    print("page: " + ("updated" if write_page() else "as it was"))


if __name__ == "__main__":
    main()
