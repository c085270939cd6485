"""Test that fifty pages that poll the server do not slow a run down.

A server slows a run by the CPU time that it uses, so the test bounds that time over a few seconds. For a longer
measurement, `python tests/serving/test_load.py` trains for two minutes while the pages come and go every few seconds.
It prints how much more CPU time a step costs while they are there; unlike wall-clock time, CPU time does not depend
on what else the machine does.
"""

import contextlib
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from auxmod.experiments.run_directory import Run
from auxmod.serving.library import Library
from auxmod.serving.server import pages
from auxmod.settings import build

CLIENTS, EVERY = 50, 2.0
"""The number of pages, and the seconds between a page's requests: as often as ours asks (`app.js`)."""
POINTS = 200
"""About as many points as the curve of a whole run has."""
SHARE = 0.03


@contextlib.contextmanager
def server(store: Path) -> Iterator[tuple[int, int]]:
    """Start a server; yield its process id and its port."""
    command = [sys.executable, "-m", "auxmod", "serve", str(store), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            address = process.stdout.readline().split()[-1]
            yield process.pid, int(address.rstrip("/").rpartition(":")[2])
        finally:
            process.terminate()


def processor_seconds(pid: int) -> float:
    """The user and system time of a process, with all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Pages:
    """Clients that follow one curve as a page does, each in its own thread."""

    def __init__(self, port: int, curve: str, count: int = CLIENTS) -> None:
        self.port, self.curve, self.there, self.ended = port, curve, threading.Event(), threading.Event()
        self.points = [0] * count
        self.answers = 0
        self.threads = [threading.Thread(target=self._follow, args=(each,)) for each in range(count)]

    def __enter__(self) -> "Pages":
        self.there.set()
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.there.set()
        for thread in self.threads:
            thread.join()

    def _follow(self, number: int) -> None:
        version, connection = 0, http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        self.ended.wait(EVERY * number / len(self.threads))
        while self.there.wait() and not self.ended.is_set():
            connection.request("GET", f"/api/news?since={version}&curve={self.curve}")
            response = connection.getresponse()
            news = json.loads(response.read())
            assert response.status == 200, news
            version, self.points[number] = news["version"], len(json.loads(news["curves"][self.curve]))
            self.answers += 1
            self.ended.wait(EVERY)
        connection.close()


def test_fifty_pages_cost_less_than_three_hundredths_of_a_processor(tmp_path: Path) -> None:
    assert f"EVERY = {1000 * EVERY:g}," in pages()["/app.js"][1].decode()
    run, seconds = Run.create(tmp_path / "run", build()), 6.0
    for step in range(1, POINTS + 1):
        run.log({"step": step, "loss": 1 / step, "accuracy": step / POINTS})
    (id,) = Library(tmp_path).items
    with server(tmp_path) as (pid, port), Pages(port, id) as clients:
        time.sleep(EVERY)  # until all clients have begun
        began, before, logged, answered = time.monotonic(), processor_seconds(pid), POINTS, clients.answers
        while time.monotonic() - began < seconds:
            logged += 1
            run.log({"step": logged, "loss": 1 / logged})
            time.sleep(0.2)
        used, elapsed, answered = processor_seconds(pid) - before, time.monotonic() - began, clients.answers - answered
        while clients.points != [logged] * CLIENTS and time.monotonic() - began < 60:
            time.sleep(0.2)
    assert clients.points == [logged] * CLIENTS, "every page has the whole curve"
    assert answered >= CLIENTS * seconds / EVERY / 2
    assert used / elapsed < SHARE, f"{used:.2f} s of {elapsed:.1f} s for {answered} answers"


# -- the longer measurement -----------------------------------------------------------------------------------

WORK = """
import sys, time, torch
from pathlib import Path
from auxmod.experiments.run_directory import Run
from auxmod.learning.engine import Ensemble
from auxmod.settings import build
torch.set_num_threads(1)
config = build(n=8, q=31, layers=1, width=32, hidden=64, samples=20_000, batch=50, epochs=1_000)
ensemble, run = Ensemble([config], torch.device("cpu")), Run.create(Path(sys.argv[1]), config)
for step in range(1, 10**9):
    at, began = time.monotonic(), time.process_time()
    ensemble.step()
    print(at, time.process_time() - began, flush=True)
    if step % 100 == 0:
        run.log({"step": step, "loss": 1 / step})
"""


def measured(seconds: float = 120.0, window: float = 4.0) -> dict[str, float]:
    """Train, with the pages polling in every other window; run and server share a CPU core, the worst case.

    While the pages poll, a step takes ``dearer`` times as much CPU time, and the server uses the share ``share`` of
    the core; together they make the run slower by ``slower`` (0.1 is 10 %).
    """
    with tempfile.TemporaryDirectory() as place, server(Path(place)) as (pid, port):
        run, log, windows = Path(place, "run"), Path(place, "steps"), int(seconds / window)
        with log.open("w") as out, subprocess.Popen([sys.executable, "-c", WORK, str(run)], stdout=out) as work:
            for process in (pid, work.pid):
                os.sched_setaffinity(process, {0})
            while not (run / "metrics.jsonl").exists():
                time.sleep(0.1)
            (id,) = Library(Path(place)).items
            with Pages(port, id) as clients:
                time.sleep(window)
                first, before = time.monotonic(), processor_seconds(pid)
                for number in range(windows):
                    clients.there.clear() if number % 2 else clients.there.set()
                    time.sleep(window)
                used = processor_seconds(pid) - before
            work.terminate()
        steps = [tuple(map(float, line.split())) for line in log.read_text().splitlines()[:-1]]
    each: list[list[float]] = [[] for _ in range(windows)]
    for began, took in steps:
        if 0 <= (number := int((began - first) // window)) < windows:
            each[number].append(took)
    means = [statistics.fmean(took) for took in each]
    ratios = [there / gone for there, gone in zip(means[::2], means[1::2], strict=True)]
    dearer, share = statistics.median(ratios), 2 * used / seconds
    figures = {"clients": CLIENTS, "seconds": seconds / 2, "steps": len(steps), "dearer": dearer, "share": share}
    return figures | {"slower": dearer / (1 - share) - 1}


if __name__ == "__main__":
    print(json.dumps(measured()))
