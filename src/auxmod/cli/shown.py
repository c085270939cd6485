"""`auxmod table`, `figure` and `published`: the paper's tables and figures from stored results, without torch."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args

from cyclopts import Parameter

from auxmod.cli import display
from auxmod.cli.options import Force, Json, numbers, whole_numbers
from auxmod.cli.tables import show_tables
from auxmod.config import TAUS, Embedding
from auxmod.errors import require
from auxmod.files import check_free
from auxmod.reporting.published import TableName as PublishedName
from auxmod.reporting.render import Format

if TYPE_CHECKING:
    from auxmod.experiments.wants import Facts
    from auxmod.reporting.cells import Table
    from auxmod.reporting.results import Index

TableName = Literal[
    "table1a", "table1b", "table2", "table3", "configs", "gap", "rho", "redbox", "grid",
    "headline", "harder", "fewer", "beyond", "setup", "knobs", "finalists", "longer", "starts",
]  # fmt: skip
TableItem = Literal[TableName, "all"]
FigureItem = Literal[
    "gap", "rho", "configs", "grid", "redbox", "curves", "table1a", "table1b", "headline", "harder", "fewer", "all"
]
_MEANINGS = {
    ("table1a", "table1b"): "match accuracy, token and angular",
    ("table2",): "τ-accuracy at large N and q",
    ("table3",): "the spread over K and r",
    ("configs",): "16 encoders",
    ("grid",): "accuracy over K and r",
    ("redbox",): "the grid of N=64, q=433",
    ("gap", "rho"): "the theory's",
    ("curves",): "while learning",
    ("headline",): "the demo over seeds",
    ("harder",): "the demo by terms and by modulus",
    ("fewer",): "the demo by samples and by steps",
    ("beyond",): "past the paper",
    ("setup", "knobs", "finalists", "longer", "starts"): "the search for the paper's own setup",
}


def one_of(choices: Any) -> Parameter:
    """An argument that names one of these choices; the help says what each is."""
    having = {", ".join(n for n in names if n in get_args(choices)): what for names, what in _MEANINGS.items()}
    return Parameter(help="; ".join(f"{names}: {what}" for names, what in having.items() if names) + ".")


PRESETS = {"stated": ("stated",), "paper": ("paper",), "best": ("best",), "both": ("paper", "best")}
_PRESET = Parameter(
    help="stated: what the paper states; paper: the setup that best explains its figures; best: each method's own "
    "best; both: these last two. paper+init=0.02+clip=0 changes settings of a preset, in all of the item's runs."
)
Preset = Annotated[str, _PRESET]
_RESULTS = "A results file, or a directory of them or of runs. [default: results/ here, or else the source tree's]"
Results = Annotated[Path | None, Parameter(help=_RESULTS, show_default=False)]
_SAMPLES = "Numbers of training samples, such as 100K,1M, in place of the item's own."
Samples = Annotated[str | None, Parameter(help=_SAMPLES, show_default=False)]
Method = Literal["auto", "aux", "sparse", "naive", "expected", "fixed", "all", "searched"]
_METHOD = (
    "Only this method. Of aux, expected has both losses, weighted; fixed draws a label once; all asks it of both "
    "points; searched is the best of the paper's 24 pairs."
)
_TAU = f"Of table2: in place of the paper's own, one or more of {', '.join(map(str, TAUS))}."
Form = Annotated[Format, Parameter(help="How it is printed; csv has a line for each cell, json a list of tables.")]


@dataclass(kw_only=True)
class Only:
    """The flags that select some of an item's cells."""

    n: Annotated[str | None, Parameter(help="Only these numbers of terms, such as 64,128.")] = None
    q: Annotated[str | None, Parameter(help="Only these moduli.")] = None
    method: Annotated[Method | None, Parameter(help=_METHOD)] = None
    embedding: Annotated[Embedding | None, Parameter(help="Only this embedding.")] = None

    def none(self, item: str, samples: Sequence[int]) -> str:
        """The sentence that no cell of an item is so."""
        said = flags(**vars(self), samples=",".join(map(str, samples)) or None)
        return f"No cell of {item} has{said}: leave out {'some of these' if said.count(' --') > 1 else 'this'}."

    def keeper(self) -> Callable[[Facts], bool]:
        """A function that says whether a cell with given facts is selected."""
        numbers = {"n": whole_numbers(self.n, "--n"), "q": whole_numbers(self.q, "--q")}
        words = {"method": self.method, "embedding": self.embedding}
        asked = numbers | {name: (word,) if word else () for name, word in words.items()}
        return lambda facts: all(not values or facts.get(name) in values for name, values in asked.items())


def flags(**values: Any) -> str:
    """The flags that were given, as they are typed after a command."""
    return "".join(f" --{name} {shlex.quote(str(value))}" for name, value in values.items() if value is not None)


def of_cells(built: Sequence[Table], only: Only, results: Path | None) -> list[Table]:
    """The tables that have cells, each with the command that makes these cells alone again."""
    more = flags(**vars(only), results=results)
    return [replace(each, command=each.command and each.command + more) for each in built if each.cells]


OnlyFlags = Annotated[Only | None, Parameter(name="*")]


def presets_of(text: str, item: str) -> tuple[str, ...]:
    """The presets that the text of `--preset` names; refuse changes that do not apply to the item."""
    from auxmod.experiments.presets import check_plain, parsed
    from auxmod.experiments.recipes import check_changes

    plain, changes = parsed(text)
    check_plain(plain, PRESETS, text)
    check_changes(item, changes)
    return tuple(own + text.removeprefix(plain) for own in PRESETS[plain])


def default_picture(item: str, presets: Sequence[str]) -> Path:
    """Where an item is drawn by default; a changed preset gets a file of its own."""
    changed = f"-{presets[0]}".replace("/", "-") if len(presets) == 1 and "+" in presets[0] else ""
    return Path(f"figures{changed}" if item == "all" else f"{item}{changed}.png")


def table(
    item: Annotated[TableItem, one_of(TableItem)],
    /,
    *,
    preset: Preset = "both",
    format: Form = "text",
    samples: Samples = None,
    tau: Annotated[str | None, Parameter(help=_TAU)] = None,
    only: OnlyFlags = None,
    results: Results = None,
    json: Json = False,
) -> None:
    """Print a table of the paper from stored results: its values, ours over seeds, chance, and the difference.

    Example: auxmod table table1b --preset paper --format markdown
    """
    from auxmod.experiments.recipes import RECIPES
    from auxmod.reporting import tables
    from auxmod.reporting.render import amount
    from auxmod.reporting.results import read

    only = only or Only()
    counts, keep = whole_numbers(samples, "--samples"), only.keeper()
    taus = numbers(tau, "--tau") if tau is not None else ()
    built = tables.tables(item, presets_of(preset, item), read(results), counts, keep, taus=taus)
    made = of_cells(built, only, results)
    require(bool(made), only.none(item, counts))
    show_tables(made, "json" if json else format)
    if all(cell.ours is None for each in made for cell in each.cells):
        several = ",".join(map(amount, RECIPES[item].shown)) if item in RECIPES else ""  # run only if named
        said = flags(preset=preset, samples=samples or several or None, **vars(only), results=results)
        display.say(f"None of these has been run: auxmod reproduce {item}{said} does it.")


def figure(
    item: Annotated[FigureItem, one_of(FigureItem)],
    /,
    *,
    out: Annotated[
        Path | None, Parameter(help="A .png, .svg or .pdf file; of all, a directory. [default: <item>.png; figures/]")
    ] = None,
    preset: Preset = "paper",
    results: Results = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Draw a figure of the paper, or one of our own, or all, from stored results.

    Example: auxmod figure configs --out configs.svg
    """
    from auxmod.reporting.results import read

    presets = presets_of(preset, item)
    pictures = pictures_of(item, presets, out or default_picture(item, presets))
    for picture in pictures:
        check_free(picture.path, force)
    drawn = draw(pictures, read(results))
    if json:
        return display.print_json(drawn)
    for each in drawn:
        display.console().print(f"drawn: {each['figure']}", markup=False)


def published(
    *,
    table: Annotated[PublishedName | None, Parameter(help="One table only.")] = None,
    json: Json = False,
) -> None:
    """Print every number of the paper's tables, as data."""
    from auxmod.reporting import published as paper

    rows = [row.to_dict() for row in paper.rows() if table in (None, row.table)]
    if json:
        return display.print_json(rows)
    for name in dict.fromkeys(row["table"] for row in rows):
        own = [row for row in rows if row["table"] == name]
        columns = [field for field in paper.FIELDS[1:] if any(row.get(field) is not None for row in own)]
        cells = [[_word(field, row.get(field)) for field in columns] for row in own]
        display.console().print(display.table(f"The paper's numbers, as printed: {name}", columns, cells))


def _word(field: str, value: Any) -> str:
    from auxmod.reporting.render import amount

    return "–" if value is None else amount(value) if field == "samples" else str(value)


# ---- drawing ---------------------------------------------------------------------------------


class Picture(NamedTuple):
    """A figure to draw."""

    item: str
    preset: str
    path: Path


def pictures_of(item: str, presets: Sequence[str], out: Path) -> list[Picture]:
    """The figures to draw for an item: one per preset if presets change it; for `all`, every item's, in a directory."""
    from auxmod.experiments.recipes import differs_by_preset
    from auxmod.reporting.figures.by_item import FIGURES
    from auxmod.reporting.figures.looks import check_name

    require(item in (*FIGURES, "all"), f"--out draws a figure, but {item} has none; those: {', '.join(FIGURES)}, all.")
    check_name(out / "all.png" if item == "all" else out)
    found = []
    for name in FIGURES if item == "all" else (item,):
        path, own = out / f"{name}.png" if item == "all" else out, presets if differs_by_preset(name) else presets[:1]
        stems = (f"{path.stem}-{preset}".replace("/", "-") for preset in own)
        named = (path.with_stem(stem) if len(own) > 1 else path for stem in stems)
        found += [Picture(name, preset, file) for preset, file in zip(own, named, strict=True)]
    return found


def draw(pictures: Sequence[Picture], stored: Index) -> list[dict[str, Any]]:
    """Draw the figures; return each one's item, preset and file, ready for JSON."""
    from auxmod.experiments.recipes import differs_by_preset
    from auxmod.reporting.figures import by_item, looks

    drawn = []
    for item, preset, path in pictures:
        looks.save(by_item.draw(item, preset, stored), path)
        drawn.append({"item": item, "preset": preset if differs_by_preset(item) else None, "figure": str(path)})
    return drawn
