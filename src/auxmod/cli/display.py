"""What a person sees: progress, tables, charts. Imports rich; knows nothing of torch or training."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console, ConsoleDimensions, Group
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from auxmod.experiments.choosing import NEAR

if TYPE_CHECKING:
    from auxmod.learning.engine import Progress as Point

PIPED = 120
"""Width, in columns, of output that does not go to a terminal."""
LONGEST = 14
"""In a table too wide for its place, cells longer than this wrap, and longer words, such as paths, break."""
COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red")


class _Console(Console):
    def print(self, *objects: Any, **options: Any) -> None:
        """Never make a table narrower than its `min_width`: a terminal may break its lines, but no figure is cut."""
        parts = [part for each in objects for part in (each.renderables if isinstance(each, Group) else [each])]
        least = max((part.min_width or 0 for part in parts if isinstance(part, Table)), default=0)
        own = self._width, self._height
        self.size = ConsoleDimensions(max(self.width, least), self.height)  # a dumb terminal ignores a width alone
        try:
            super().print(*objects, **options)
        finally:
            self._width, self._height = own

    def _check_buffer(self) -> None:
        try:
            super()._check_buffer()
        except OSError as error:
            if error.errno != errno.EIO:  # EIO: the terminal was closed
                raise
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """If nobody reads the results, raise, so that `main` ends; if nobody reads the progress, go on without it."""
        if not self.stderr:
            raise BrokenPipeError  # rich's own version exits with 1
        with contextlib.suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stderr.fileno())


def console(stderr: bool = False) -> Console:
    """A console that honours NO_COLOR and, when piped, is wider than rich's 80 columns."""
    out = _Console(stderr=stderr, highlight=False)
    return out if out.is_terminal else _Console(stderr=stderr, highlight=False, width=PIPED)


def say(sentence: str) -> None:
    """Say something beside the results, on stderr, exactly as it is."""
    console(stderr=True).print(sentence, markup=False, soft_wrap=True)


def verbatim(value: object) -> str:
    """Escape text from a file, so that neither rich tags nor terminal control sequences in it take effect."""
    return escape(printable(value))


def printable(value: object) -> str:
    """Text from a file without terminal control sequences, for where no tags act."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))


def print_json(value: Any) -> None:
    """Print a result for a program to read: nothing else goes to stdout."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def percent(share: float | None) -> str:
    """0.98765 → 98.8 %; a small share keeps one digit, rather than round to 0.0 %; None, not known, is –."""
    if share is None:
        return "–"
    return f"{100 * share:.1f} %" if share == 0 or share >= 0.0005 else f"{100 * share:.1g} %"


class Live:
    """Live bars on a terminal, plain lines elsewhere. Always on stderr, so stdout stays clean."""

    def __init__(self, quiet: bool, *more: ProgressColumn) -> None:
        self.out = console(stderr=True)
        self.quiet, self.live = quiet, not quiet and self.out.is_terminal
        status = TextColumn("{task.fields[status]}")
        columns = (TextColumn("{task.description:>8}"), BarColumn(bar_width=30), MofNCompleteColumn(), status, *more)
        self.bars = Progress(*columns, console=self.out, disable=not self.live)

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.bars.stop()


class Bars(Live):
    """One bar per run."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(quiet, TimeRemainingColumn())
        self.tasks: dict[str, Any] = {}
        self.first: dict[str, tuple[int, float]] = {}
        self.held_out: dict[str, str] = {}

    def show(self, name: str, event: Point, large: bool = False) -> None:
        """Show how far a run is; ``large``, for a large q, always shows near answers too, as few are exact."""
        if self.quiet:
            return
        step, now, accuracy = event.step, time.monotonic(), event.accuracy[0] if event.accuracy else None
        first, began = self.first.setdefault(name, (step, now))
        if accuracy is not None:
            near = event.near[0] if event.near else 0.0
            within = f" ({percent(near)} within {NEAR:g}·q)" if large or near > accuracy + 0.05 else ""
            self.held_out[name] = percent(accuracy) + within
        held_out = self.held_out.get(name, "–")
        rate = f"{(step - first) / (now - began):,.1f} steps/s" if step > first and now > began else ""
        status = f"loss {event.loss[0]:.4f}  held-out {held_out:>7}  {rate}".rstrip()
        status += "  measuring on the test inputs …" if step == event.steps else ""
        if not self.live:
            if accuracy is not None:
                self.out.print(f"{name}: step {step:,}/{event.steps:,}  {status}")
            return
        if name not in self.tasks:
            self.tasks[name] = self.bars.add_task(name, total=event.steps, status="")
        self.bars.update(self.tasks[name], completed=step, status=status)


def titled(title: str, body: Table) -> Group:
    """A table under a title that may be wider than the table, such as a path."""
    return Group(Text(printable(title), style="bold"), body)


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int = 1, lines: bool = False
) -> Group:
    """A table under its title. The first ``texts`` columns are text, the others figures; ``lines`` part the rows."""
    out = Table(header_style="bold", min_width=1, show_lines=lines)
    for number, column in enumerate(columns):
        cells = [column, *(Text.from_markup(row[number]).plain for row in rows)]
        whole = number > 0 and max(map(len, cells)) <= LONGEST
        words = cells if whole else [word[:LONGEST] for cell in cells for word in cell.split()]
        out.add_column(column, justify="left" if number < texts else "right", no_wrap=whole, overflow="fold")
        out.min_width = (out.min_width or 0) + 3 + max(map(len, words), default=0)
    for row in rows:
        out.add_row(*row)
    return titled(title, out)


def mapping(title: str, values: Mapping[str, Any]) -> Group:
    """A table of names and values, one per line, shown verbatim; empty values are left out."""
    rows = [(name, verbatim(value)) for name, value in values.items() if value != ""]
    return table(title, ("setting", "value"), rows, texts=2)


def line_chart(series: Mapping[str, Sequence[tuple[float, float]]], height: int = 11, width: int = 60) -> str:
    """Draw each name's (x, y) points, y in 0..1, as a curve of braille dots with rich colour tags; as wide as fits."""
    width = min(width, max(20, console().width - 10))
    right = max((x for points in series.values() for x, _ in points), default=1.0) or 1.0
    dots = [[0] * width for _ in range(height)]
    owner: dict[tuple[int, int], str] = {}
    for (_, points), colour in zip(series.items(), COLOURS, strict=False):
        for x, y in _interpolated(points, 4 * width):
            column = min(2 * width - 1, int(x / right * (2 * width - 1)))
            row = min(4 * height - 1, int((1 - min(1.0, y)) * (4 * height - 1)))
            dots[row // 4][column // 2] |= _DOTS[row % 4][column % 2]
            owner[row // 4, column // 2] = colour
    lines = []
    for r in range(height):
        cells = (f"[{owner[r, c]}]{chr(0x2800 + bits)}[/]" if (bits := dots[r][c]) else " " for c in range(width))
        label = f"{100 * (1 - r / (height - 1)):>4.0f} %"
        lines.append(f"{label if r % 2 == 0 else '':>6} │{''.join(cells)}")
    lines.append(f"{'':>6} └{'─' * width}\n{'':>8}0{'steps':^{width - 8}}{right:>7,.0f}")
    legend = "   ".join(f"[{colour}]●[/] {name}" for name, colour in zip(series, COLOURS, strict=False))
    return "\n".join([*lines, f"{'':>8}{legend}"])


_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def _interpolated(points: Sequence[tuple[float, float]], count: int) -> list[tuple[float, float]]:
    """Fill in straight lines between the points, ``count`` points each, to look unbroken."""
    out = list(points[:1])
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        out += [(x0 + (x1 - x0) * i / count, y0 + (y1 - y0) * i / count) for i in range(1, count + 1)]
    return out
