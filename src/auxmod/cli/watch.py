"""Show a sweep's progress: cells done, running and failed, and the time left. A stop waits until all is saved."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from auxmod.cli.display import Live, percent
from auxmod.experiments.choosing import NEAR, by_near
from auxmod.learning.cost import work

if TYPE_CHECKING:
    from auxmod.experiments.ensembles import Started
    from auxmod.experiments.sweep import Event, Standing


@dataclass
class Stop:
    """Whether a stop was requested. A second request interrupts at once; so does the first if everything is saved.

    A terminal that closes may send several signals. These do not interrupt the saving: nobody is waiting.
    """

    asked: bool = False
    saved: str = ""
    """The message for a stop once everything is saved; empty before."""
    closed: bool = False
    """Whether a closing terminal requested it."""

    def __call__(self) -> bool:
        return self.asked

    def press(self, number: int, frame: Any) -> None:
        closing = number == signal.SIGHUP or (self.closed and number == signal.SIGTERM)
        if self.saved or (self.asked and not closing):
            raise KeyboardInterrupt(self.saved)
        self.asked, self.closed = True, self.closed or closing


@contextlib.contextmanager
def stop_when_asked() -> Iterator[Stop]:
    """Inside the block, only note Ctrl-C, a batch system's SIGTERM or a closed terminal: training then saves first."""
    stop, heeded = Stop(), [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup sets SIG_IGN
        heeded.append(signal.SIGHUP)
    before = {number: signal.signal(number, stop.press) for number in heeded}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Watch(Live):
    """Two bars, for the cells and for the ensemble in training."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(quiet)
        self.standing: Standing | None = None
        self.running: Started | None = None
        self.began: float | None = None
        self.worked, self.at = 0.0, 0
        """FLOPs of the ensembles that this process has finished; the step of the one in training."""
        self.tasks = {name: self.bars.add_task(name, total=None, status="") for name in ("cells", "steps")}

    def see(self, event: Event) -> None:
        """Show an event of the sweep."""
        from auxmod.experiments.ensembles import Ended, Notice, Started
        from auxmod.experiments.sweep import Standing

        if isinstance(event, Standing):
            self._stand(event)
        elif isinstance(event, Notice):
            self._say(f"[yellow]{escape(event.sentence)}[/]")
        elif isinstance(event, Started):
            self._start(event)
        elif isinstance(event, Ended):
            self._end(event.rows)
        else:
            self._go_on(event)

    def _say(self, line: str) -> None:
        if not self.quiet:
            self.bars.console.print(line, soft_wrap=True)

    def _stand(self, standing: Standing) -> None:
        if standing != self.standing and standing.elsewhere == standing.total - standing.done - standing.failed > 0:
            self._say(f"Waiting for {standing.elsewhere} cells that other processes train.")
        self.standing = standing
        self._show_cells()

    def _start(self, event: Started) -> None:
        self.began = self.began or time.monotonic()
        self.running, self.at = event, event.step
        self.work, self.best = float(sum(map(work, event.configs))), ""
        first = event.configs[0]
        many = f"{len(event.configs)} cell{'s' * (len(event.configs) > 1)}"
        self._say(
            f"{many} of N = {first.problem.n}, {first.model.embedding}, "
            f"{first.training.samples:,} samples: steps {event.step:,} to {event.steps:,}."
        )
        self.bars.update(self.tasks["steps"], total=event.steps, completed=event.step, status="")
        self._show_cells()

    def _go_on(self, event: Any) -> None:
        self.at = event.step
        near = event.near and self.running and by_near(config.problem.q for config in self.running.configs)
        shares = (event.near if near else event.accuracy) or []
        alive = [share for share, dead in zip(shares, event.dead, strict=bool(shares)) if dead is None]
        within = f" within {NEAR:g}·q" if near else ""
        best = f"best held-out {percent(max(alive))}{within}" if alive else ""
        if self.live:
            self.best = best or self.best
            self.bars.update(self.tasks["steps"], completed=event.step, status=self.best)
            self._show_cells()
        elif alive:
            self._say(f"step {event.step:,}/{event.steps:,}  {best}  {self._status()}")

    def _end(self, rows: list[dict[str, Any]]) -> None:
        if self.running:
            self.worked += self.work * (1 - self.running.step / self.running.steps)
        self.running = None
        failed = [row for row in rows if "failed" in row]
        for row in failed:
            self._say(f"[red]Cell {row['hash']} failed.[/] {escape(str(row['failed']))}")
        if not self.live:
            self._say(f"{len(rows) - len(failed)} cells done, {len(failed)} failed.")

    # -- cells ------------------------------------------------------------------------------------------------

    def _show_cells(self) -> None:
        if self.standing is not None:
            finished = self.standing.done + self.standing.failed
            self.bars.update(self.tasks["cells"], total=self.standing.total, completed=finished, status=self._status())

    def _status(self) -> str:
        assert self.standing is not None
        running = len(self.running.configs) if self.running else 0
        parts = {"running": running, "elsewhere": self.standing.elsewhere, "failed": self.standing.failed}
        shown = [f"{count} {name}" for name, count in parts.items() if count]
        left = self._seconds_left()
        return ", ".join(shown + ([f"about {duration(left)} left"] if left is not None else []))

    def _seconds_left(self) -> float | None:
        """The time for the rest of the sweep's arithmetic, at the rate seen so far; None if it is not known yet."""
        if self.running is None or self.standing is None or self.began is None:
            return None
        share, before = self.at / self.running.steps, self.running.step / self.running.steps
        worked, elapsed = self.worked + self.work * (share - before), time.monotonic() - self.began
        return (self.standing.work_left - self.work * share) * elapsed / worked if worked > 0 else None


def duration(seconds: float) -> str:
    """Format seconds: 90 → 90 s; 600 → 10 min; 9000 → 2.5 h."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
