"""Tests that the command line matches surface.json (commands, flags, types, defaults, choices), and that help is quick.

If a change is meant, write the new surface with `python tests/cli/test_surface.py` and review its diff.
"""

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from cyclopts import App

from auxmod.cli import app
from auxmod.config import DATA, GROUPS
from auxmod.settings import AUTO, build

FROZEN = Path(__file__).with_name("surface.json")


def surface() -> dict[str, list[str]]:
    """Every command of the application, with a line for each of its flags."""
    return {
        name: sorted(line(a) for a in each.assemble_argument_collection() if a.show) for name, each in commands(app)
    }


def commands(within: App, prefix: str = "") -> Iterator[tuple[str, App]]:
    """Yield every command with its full name, subcommands such as `runs list` included."""
    for name in sorted(name for name in within.resolved_commands() if not name.startswith("-")):
        found = within[name]
        if found.default_command is None:
            yield from commands(found, f"{prefix}{name} ")
        else:
            yield prefix + name, found


def line(argument: Any) -> str:
    shown, default = argument.parameter.show_default, argument.field_info.default
    value = shown if isinstance(shown, str) else "required" if argument.required else repr(default)
    environment = "".join(f" ({name})" for name in argument.parameter.env_var)
    return f"{' '.join(argument.names)}: {kind(argument.hint)} = {value}{environment}"


def kind(hint: Any) -> str:
    """A type hint as text: int, str, …, or the choices."""
    parts = [part for part in get_args(hint) if part is not type(None)]
    if parts and all(isinstance(part, str) for part in parts):
        return "|".join(parts)
    if type(None) in get_args(hint):
        return "|".join(kind(part) for part in parts)
    return str(hint.__name__) if not parts else str(hint)


def test_the_surface_is_frozen() -> None:
    assert surface() == json.loads(FROZEN.read_text()), __doc__


def test_every_setting_is_a_flag_with_help_an_environment_variable_and_a_true_default() -> None:
    flags = {a.name: a for a in app["train"].assemble_argument_collection() if a.show}
    for group, made in GROUPS.items():
        for field in made.__dataclass_fields__.values():
            if field.name in DATA.values():
                continue
            argument = flags[f"--{field.name.replace('_', '-')}"]
            assert len(argument.parameter.help) > 8, field.name
            assert argument.parameter.env_var == (f"AUXMOD_{field.name.upper()}",)
            if group != "method":
                shown, _, ours = str(argument.parameter.show_default).partition("; auto: ")
                assert shown == (str(field.default) or "False")  # an empty default is not shown
                assert ours.removesuffix(" or more, with adamw 0.0004") == str(AUTO.get(field.name, ""))
    for name, own in (("k", build().method.k), ("r", build().method.r)):
        assert flags[f"--{name}"].parameter.show_default == f"{own:g}, or as the preset has it"


def test_help_flows_and_leaves_what_arguments_are_to_the_panels() -> None:
    for name, command in commands(app):
        paragraphs = command.help.split("\n\n")
        assert not [each for each in paragraphs if "\n" in each or "---" in each], name


# -- help is quick --------------------------------------------------------------------------------------------

HEAVY = ("torch", "numpy", "scipy", "matplotlib", "safetensors", "sympy")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    done = run("-X", "importtime", "-m", "auxmod", *arguments)
    assert done.returncode == 0
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line}
    assert "auxmod.cli" in imported
    assert not imported & set(HEAVY)


def test_help_takes_under_half_a_second() -> None:
    """CPU time, the best of up to ten tries, since other programs may be using the machine."""
    best = 10.0
    for _ in range(10):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert run("-m", "auxmod", "--help").returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        if best < 0.5:
            break
    assert best < 0.5


def test_the_script_and_the_module_are_one() -> None:
    script = Path(sys.executable).with_name("auxmod")
    if not script.exists():
        pytest.skip("the package is not installed as a script")
    version = subprocess.run([script, "--version"], capture_output=True, text=True, check=True).stdout
    assert version == run("-m", "auxmod", "--version").stdout
    assert run("-m", "auxmod", "nonsense").returncode == 2


def test_importing_the_package_imports_no_torch() -> None:
    seen = "print('torch' in sys.modules)"
    done = run("-c", f"import auxmod, sys; auxmod.build(); {seen}; auxmod.train; {seen}")
    assert done.stdout == "False\nTrue\n", done.stderr


if __name__ == "__main__":
    FROZEN.write_text(json.dumps(surface(), indent=1, ensure_ascii=False) + "\n")
