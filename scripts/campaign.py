"""Train the missing cells of many items on one GPU, several items at a time.

    python scripts/campaign.py LIST OUT --seconds 3600

Each line of LIST has the arguments of one `auxmod reproduce`, the longest item first: a worker that ends takes the next
line. Runs already in results/, here or else in the source tree, are not trained again. New rows, and the output of each
worker, go to the directory OUT. After --seconds, at Ctrl-C and at SIGTERM the workers save and stop; the same command
resumes them. Two items that share runs, as grid and table3 do, should not run side by side: neither would see the
other's.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).parents[1]
PATIENCE = 60
"""Seconds that a worker has to save and stop, before it is killed."""


def main() -> int:
    """Run the list; return 0 if all of it is done, 1 if an item failed, 130 if it was stopped."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("list", type=Path)
    asked.add_argument("out", type=Path)
    asked.add_argument("--seconds", type=float, default=float("inf"))
    asked.add_argument("--workers", type=int, default=4)
    asked.add_argument("--program", default=f"{shlex.quote(sys.executable)} -m auxmod", help="in place of auxmod")
    given = asked.parse_args()
    if not given.list.is_file():
        asked.error(f"there is no file {given.list}: name one with the arguments of an item a line.")
    if given.workers < 1:
        asked.error(f"--workers is {given.workers}, but must be 1 or more.")
    program = shlex.split(given.program)
    if not program or not shutil.which(program[0]):
        asked.error(f"--program is {given.program!r}, which cannot be run here.")
    lines = (shlex.split(line, comments=True) for line in given.list.read_text().splitlines())
    items = [words for words in lines if words]
    bring_stored(given.out)
    with multi_process_service():
        ends = run(items, program, given.out, given.seconds, given.workers)
    return 130 if any(code == 130 for code in ends) or len(ends) < len(items) else int(any(ends))


def bring_stored(out: Path) -> None:
    """Copy the stored results into the directory of the new ones, so that the workers find them."""
    here, tree = Path("results"), ROOT / "results"
    stored = here if here.is_dir() else tree  # as `auxmod reproduce` has it without --results
    out.mkdir(parents=True, exist_ok=True)
    for file in stored.glob("*.jsonl") if out.resolve() != stored.resolve() else ():
        shutil.copy(file, out / f"stored-{file.name}")


@contextlib.contextmanager
def multi_process_service() -> Iterator[None]:
    """Run NVIDIA's MPS, if installed: with it the kernels of all workers run at once; without it they take turns."""
    control = shutil.which("nvidia-cuda-mps-control")
    started = control and subprocess.run([control, "-d"], capture_output=True, check=False).returncode == 0
    try:
        yield
    finally:
        if control and started:
            subprocess.run([control], input=b"quit\n", capture_output=True, check=False)


def run(items: list[list[str]], program: list[str], out: Path, seconds: float, workers: int) -> list[int]:
    """Run items until all are done, the time is up or a signal stops them; return the exit codes of those started."""
    stops: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: stops.append(number))
    waiting, running, ends = list(items), dict[subprocess.Popen[bytes], tuple[list[str], Path]](), list[int]()
    began, told = time.monotonic(), float("inf")
    killed = {-signal.SIGTERM: 130, -signal.SIGKILL: 130}  # once a stop was requested: stopped before it saved
    try:
        while waiting or running:
            if (stops or time.monotonic() - began > seconds) and told == float("inf"):
                told = time.monotonic()
                waiting.clear()
                for worker in running:
                    worker.terminate()
            while waiting and len(running) < workers:
                words = waiting.pop(0)
                log = out / log_of(words)
                command = [*program, "reproduce", *words, "--results", str(out)]
                with log.open("ab") as file:  # its own session: the terminal's Ctrl-C does not reach it
                    worker = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
                running[worker] = words, log
            for worker in [worker for worker in running if worker.poll() is not None]:
                code = worker.returncode if told == float("inf") else killed.get(worker.returncode, worker.returncode)
                ends.append(code)
                said = {0: "done", 130: "stopped"}.get(code, f"failed, exit code {code}")
                words, log = running.pop(worker)
                last = log.read_text(errors="replace").strip().rpartition("\n")[2] if said.startswith("failed") else ""
                print(f"{said}: {shlex.join(words)} ({log}){last and f': {last}'}", flush=True)
            if time.monotonic() - told > PATIENCE:
                for worker in running:
                    worker.kill()
            time.sleep(0.1)
    finally:
        for worker in running:  # empty unless this function failed
            worker.terminate()
    return ends


def log_of(words: list[str]) -> str:
    """The name of an item's log, which no other item has: words are joined by a character that is quoted in them."""
    return "+".join(quote(word, safe=",=") for word in words) + ".log"


if __name__ == "__main__":
    sys.exit(main())
