"""The flags that describe a run, made from the configuration's own fields, and what they resolve to.

A flag's name, type, default and help are those of the field, so that there is one place to change. Precedence:
flag > environment (`AUXMOD_…`) > `--config` file > `--preset` > default.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import itertools
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_origin, get_type_hints

from cyclopts import Group, Parameter, Token

from auxmod import config as config_module
from auxmod.checked import number
from auxmod.config import GROUPS
from auxmod.errors import UserError, require

HIDDEN = {"data_sha256"}
"""Fields that are worked out, never given."""
_EXTRA = {
    "k": (int, "method", "The auxiliary modulus is K·q, for --method aux.", "4"),
    "r": (float, "method", "The weight of the auxiliary modulus, for --method aux.", "0.3"),
    "seed": (int, "training", "Data, initial weights, order and draws all follow from it.", "0"),
}
_METHOD_DEFAULT = "as the method has it"
_PANELS = {name: Group.create_ordered(name.capitalize()) for name in (*GROUPS, "run")}
"""The panels of the help, in this order."""
RUN = _PANELS["run"]
"""The panel of flags that do not change what is learned."""


@functools.cache
def _field_docs(name: str) -> dict[str, str]:
    """The string under each field of the dataclass of this name."""
    body = next(
        node.body
        for node in ast.parse(inspect.getsource(config_module)).body
        if isinstance(node, ast.ClassDef) and node.name == name
    )
    docs = {}
    for field, after in itertools.pairwise(body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            docs[field.target.id] = inspect.cleandoc(str(after.value.value)).replace("\n", " ")
    return docs


def _flag_type(kind: Any) -> Any:
    """Lists are typed as text on the command line, 1,2,4."""
    return str if get_origin(kind) is tuple else kind


def whole(_: Any, tokens: Sequence[Token]) -> int:
    """A whole number as it was typed, 100_000 too: a fraction is refused, never rounded."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"{tokens[0].value!r} is not a whole number.") from None


WHOLE = Parameter(converter=whole)
"""For every flag that is a whole number."""


def make_flags(name: str, *, text: bool = False) -> type:
    """A flag for each setting, of its own type; or as text, where it may be a list or a range of values."""
    fields: list[tuple[str, Any, Any]] = []

    def add(name: str, kind: Any, group: str, doc: str, default: str) -> None:
        parameter = Parameter(
            help=doc, group=_PANELS[group], show_default=default or False, env_var=f"AUXMOD_{name.upper()}"
        )
        hint = str if text else kind
        kinds = (WHOLE, parameter) if hint is int else (parameter,)
        fields.append((name, Annotated[hint | None, *kinds], dataclasses.field(default=None)))

    for group, kind in GROUPS.items():
        docs, hints = _field_docs(kind.__name__), get_type_hints(kind)
        for field in dataclasses.fields(kind):
            if field.name in HIDDEN:
                continue
            default = _METHOD_DEFAULT if group == "method" else str(field.default)
            if field.name == "method":
                default = "aux, or custom with --moduli"
            add(field.name, _flag_type(hints[field.name]), group, docs.get(field.name, ""), default)
        for extra, (extra_kind, place, doc, default) in _EXTRA.items():
            if place == group:
                add(extra, extra_kind, group, doc, default)
    made = dataclasses.make_dataclass(name, fields, kw_only=True)
    made.__module__ = __name__  # else cyclopts takes it for a built-in type
    return made


if TYPE_CHECKING:
    RunFlags = Any
    SweepFlags = Any
else:
    RunFlags, SweepFlags = make_flags("RunFlags"), make_flags("SweepFlags", text=True)

_PRESET_HELP = (
    "Fill every setting not given. demo: a small case for two CPU cores; paper: the paper's setup; "
    "best: what learned best in our runs."
)
_CONFIG_HELP = "A TOML file of settings. Each can also come from the environment, as AUXMOD_<SETTING>."
Preset = Annotated[
    Literal["demo", "paper", "best"] | None,
    Parameter(help=_PRESET_HELP, group=RUN, env_var="AUXMOD_PRESET"),
]
ConfigFile = Annotated[
    Path | None,
    Parameter(name="--config", help=_CONFIG_HELP, group=RUN, env_var="AUXMOD_CONFIG"),
]
Device = Annotated[str, Parameter(help="auto, cpu, cuda or cuda:i.", group=RUN, env_var="AUXMOD_DEVICE")]
SWITCH = Parameter(negative="", show_default=False)
"""A flag that is off unless given."""
Json = Annotated[bool, SWITCH, Parameter(name="--json", help="Print the result as JSON on stdout.", group=RUN)]
Track = Annotated[
    Literal["wandb", "tensorboard", "trackio"] | None,
    Parameter(help="Send curves and figures to a tracker as well.", group=RUN, env_var="AUXMOD_TRACK"),
]
Quiet = Annotated[bool, SWITCH, Parameter(help="No progress.", group=RUN)]


def given_axes(flags: Any, file: Path | None = None) -> dict[str, Any]:
    """What the user said of each setting, as it was said: where that is text, a value, a list or a range."""
    said = {} if flags is None else {k: v for k, v in vars(flags).items() if v is not None}
    return (_read_toml(file) if file else {}) | said


def given_settings(flags: Any, file: Path | None) -> dict[str, Any]:
    """What the user said, by flag, environment or file."""
    said = given_axes(flags)
    for name in ("moduli", "harmonics", "weights"):
        if name in said:
            said[name] = numbers(said[name], f"--{name}")
    for name in ("moduli", "harmonics"):
        whole = all(v == int(v) for v in said.get(name, ()))
        require(whole, f"--{name} must be whole numbers, such as --{name} 2,4.")
        said |= {name: tuple(int(v) for v in said[name])} if name in said else {}
    return (_read_toml(file) if file else {}) | said


def numbers(text: str, flag: str) -> tuple[float, ...]:
    """1,2,4 → (1.0, 2.0, 4.0)."""
    values = [number(part.strip()) for part in text.split(",")]
    require(None not in values, f"{flag} is {text!r}, but must be numbers with commas between, such as 1,2,4.")
    return tuple(v for v in values if v is not None)


def _read_toml(path: Path) -> dict[str, Any]:
    """A file's settings; [problem], [method], … tables are optional."""
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"--config {path} cannot be read ({error}).") from None
    flat: dict[str, Any] = {}
    for name, value in content.items():
        flat |= value if isinstance(value, dict) else {name: value}
    return flat
