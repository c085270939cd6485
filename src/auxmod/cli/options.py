"""The flags that describe a run, made from the configuration's own fields, and how their values are read.

Each flag takes its name, type, default and help from its field, so there is one place to change. Precedence:
flag > environment (`AUXMOD_…`) > `--config` file > `--preset` > default.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_origin, get_type_hints

from cyclopts import Group, Parameter, Token
from docstring_parser import parse_from_object

from auxmod.checked import flag, longhand, number
from auxmod.config import DATA, GROUPS
from auxmod.errors import require
from auxmod.experiments.presets import GRID
from auxmod.experiments.ranges import TYPES, alternatives, flat
from auxmod.files import read_toml
from auxmod.settings import ADAMW_RATE, AUTO

HIDDEN = {*DATA.values()}
"""Fields that are computed, never given."""
_EXTRA = (
    ("k", int, "method", "The auxiliary modulus is K·q, for --method aux.", "4, or as the preset has it"),
    ("r", float, "method", "The weight of the auxiliary modulus, for --method aux.", "0.3, or as the preset has it"),
    ("seed", int, "training", "Data, initial weights, order and draws all follow from it.", "0"),
)
_PANELS = {name: Group.create_ordered(name.capitalize()) for name in (*GROUPS, "run")}
"""The help's panels, in order."""
RUN = _PANELS["run"]
"""The panel of flags that are not settings of a run."""


@functools.cache
def _field_docs(group: str) -> dict[str, str]:
    """The docstring under each field of a group of settings."""
    fields = parse_from_object(GROUPS[group]).params
    return {field.arg_name: " ".join((field.description or "").split()) for field in fields}


def whole(_: Any, tokens: Sequence[Token]) -> int:
    """Read a whole number as typed, also 100_000 and 100K; refuse a fraction rather than round it."""
    try:
        return int(longhand(tokens[0].value))
    except ValueError:
        raise ValueError(f"{tokens[0].value!r} is not a whole number, such as 1000 or 1K.") from None


WHOLE = Parameter(converter=whole)
"""Annotates every flag that is a whole number."""


def _settings() -> Iterator[tuple[str, Any, str, str, str]]:
    """Every setting: its name, type, panel, help, and default as the help shows it."""
    for group, kind in GROUPS.items():
        docs, hints = _field_docs(group), get_type_hints(kind)
        for field in dataclasses.fields(kind):
            if field.name in HIDDEN:
                continue
            default = "as the method has it" if group == "method" else str(field.default)
            if field.name in AUTO:
                default += f"; auto: {AUTO[field.name]}"
            if field.name == "lr":
                default += f" or more, with adamw {ADAMW_RATE}"
            if field.name == "method":
                default = "auto; aux with --preset, --k or --r; custom with --moduli"
            yield field.name, hints[field.name], group, docs.get(field.name, ""), default
        yield from (extra for extra in _EXTRA if extra[2] == group)


def make_flags(
    name: str, *, text: bool = False, groups: Sequence[str] = tuple(GROUPS), defaults: Mapping[str, str] | None = None
) -> type:
    """Make a dataclass with a flag for each setting: of its type, or with ``text`` as text, for lists and ranges.

    ``defaults`` are what a command's help shows in place of the settings' own.
    """
    fields: list[tuple[str, Any, Any]] = []
    for setting, kind, group, doc, default in _settings():
        if group not in groups:
            continue
        env = f"AUXMOD_{setting.upper()}"
        shown = (defaults or {}).get(setting, default)
        parameter = Parameter(help=doc, group=_PANELS[group], show_default=shown or False, env_var=env)
        hint = str if text or get_origin(kind) is tuple else kind  # a list is given as text, such as 1,2,4
        kinds = (WHOLE, parameter) if hint is int else (parameter,)
        fields.append((setting, Annotated[hint | None, *kinds], dataclasses.field(default=None)))
    made = dataclasses.make_dataclass(name, fields, kw_only=True)
    made.__module__ = __name__  # otherwise cyclopts takes it for a built-in type
    return made


if TYPE_CHECKING:
    RunFlags = Any
    SweepFlags = Any
    GridFlags = Any
    ModelFlags = Any
else:
    RunFlags, SweepFlags = make_flags("RunFlags"), make_flags("SweepFlags", text=True)
    GridFlags = make_flags("GridFlags", text=True, defaults=GRID | {"method": "aux"})
    ModelFlags = make_flags("ModelFlags", groups=("model",))

_PRESET_HELP = (
    "Fill every setting not given. demo: a small case for two CPU cores; stated: what the paper states; "
    "paper: the setup that best explains its figures; best: what learned best in our runs; paper+init=0.02+clip=0: "
    "one of these with settings changed."
)
_CONFIG_HELP = "A TOML file of settings. Each can also come from the environment, as AUXMOD_<SETTING>."
Preset = Annotated[
    str | None,
    Parameter(help=_PRESET_HELP, group=RUN, env_var="AUXMOD_PRESET"),
]
ConfigFile = Annotated[
    Path | None,
    Parameter(name="--config", help=_CONFIG_HELP, group=RUN, env_var="AUXMOD_CONFIG"),
]
Device = Annotated[str, Parameter(help="auto, cpu, cuda or cuda:i.", group=RUN, env_var="AUXMOD_DEVICE")]
SWITCH = Parameter(negative="", show_default=False)
"""Annotates a flag that is off unless given."""
Force = Annotated[bool, SWITCH, Parameter(help="Overwrite what --out names.", group=RUN)]
Json = Annotated[bool, SWITCH, Parameter(name="--json", help="Print the result as JSON on stdout.", group=RUN)]
Track = Annotated[
    Literal["wandb", "tensorboard", "trackio"] | None,
    Parameter(help="Send curves and figures to a tracker as well.", group=RUN, env_var="AUXMOD_TRACK"),
]
CheckpointEvery = Annotated[int, WHOLE, Parameter(help="Steps between checkpoints.", group=RUN)]
_MEMBERS = (
    "Train at most so many models together; those already saved together stay together. [default: as fit, up to 64]"
)
Members = Annotated[int | None, WHOLE, Parameter(help=_MEMBERS, group=RUN)]
RetryFailed = Annotated[bool, SWITCH, Parameter(help="Try cells again that have failed before.", group=RUN)]
Quiet = Annotated[bool, SWITCH, Parameter(help="No progress.", group=RUN)]


def given_axes(flags: Any, file: Path | None = None) -> dict[str, Any]:
    """The settings the user gave, unparsed: text may be a value, a list or a range."""
    said = {} if flags is None else {k: v for k, v in vars(flags).items() if v is not None}
    for name in DATA:
        require(said.get(name) != "", f"{flag(name)} is empty: name a file, or leave it out and inputs are drawn.")
    return over(flat(read_toml(file, "--config"), f"--config {file}") if file else {}, said)


RIVALS = {"moduli": ("k", "r"), "weights": ("r",), "k": ("moduli",), "r": ("weights",)}
"""For each setting, those that it replaces: they say the same thing in another way."""


def over(below: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two layers of settings: all of ``said``, and from ``below`` what ``said`` neither sets nor replaces."""
    rivals = {rival for name in said for rival in RIVALS.get(name, ())}
    rivals |= {"weights"} if "moduli" in rivals & below.keys() else set()  # they belong to the moduli that are replaced
    return {name: value for name, value in below.items() if name not in rivals} | dict(said)


KNOWN = {f"AUXMOD_{name.upper()}" for name in (*TYPES, "preset", "config", "device", "track", "storage", "commit")}
"""The environment variables that commands read."""


def unread(environment: Mapping[str, str]) -> list[str]:
    """Variables that look like settings but are none, except those that Kubernetes sets for a service."""
    ours = (name for name in environment if re.match(r"AUXMOD_(?!.*(SERVICE_|PORT))", name))
    return sorted(name for name in ours if name not in KNOWN)


def given_settings(flags: Any, file: Path | None) -> dict[str, Any]:
    """The settings the user gave by flag, environment or file; text such as "100K" or "1,2,4" is read as in a sweep."""
    return {name: _one(name, value) for name, value in given_axes(flags, file).items()}


def _one(name: str, value: Any) -> Any:
    """The one value that text stands for; text that stands for several is returned, for its setting to refuse."""
    if not isinstance(value, str) or TYPES.get(name, str) is str:
        return value
    values = alternatives(name, value)
    return values[0] if len(values) == 1 else value


def numbers(text: str, flag: str) -> tuple[float, ...]:
    """Read numbers: 1,2,4K → (1.0, 2.0, 4000.0)."""
    values = [number(longhand(part.strip())) for part in text.split(",")]
    require(None not in values, f"{flag} is {text!r}, but must be numbers with commas between, such as 1,2,4.")
    return tuple(v for v in values if v is not None)


def whole_numbers(text: str | None, flag: str) -> tuple[int, ...]:
    """Read whole numbers, without repeats: 8,100_000 or 8,100K → (8, 100000); None → ()."""
    values = [number(longhand(part.strip())) for part in text.split(",")] if text is not None else []
    sentence = f"{flag} is {text!r}, but must be whole numbers of at least 1, such as {flag} 8,16 (100K is 100,000)."
    require(all(value is not None and value == int(value) >= 1 for value in values), sentence)
    return tuple(dict.fromkeys(int(value) for value in values if value is not None))
