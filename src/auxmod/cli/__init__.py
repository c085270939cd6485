"""The command line: parses arguments and prints, no logic. Commands import torch late, so that help is quick."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
import warnings
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Group, Parameter

from auxmod import __version__
from auxmod.cli import bench, demo, evaluate, grid, report, reproduce, runs, search, serve, shown, sweep, theory, train
from auxmod.cli.display import console, say
from auxmod.cli.options import unread
from auxmod.errors import UserError, first_line

app = App(
    name="auxmod",
    version=__version__,
    help="Train Transformers to compute (x_1 + … + x_N) mod q, with an auxiliary modulus.",
    help_format="plaintext",
    default_parameter=Parameter(show_env_var=False),
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
COMMANDS = {
    "One model": (demo.demo, train.train, evaluate.evaluate, evaluate.predict, evaluate.data),
    "Many models": (sweep.sweep, grid.grid, search.search),
    "Looking at them": (runs.app, report.view, report.report, serve.serve),
    "The paper": (theory.theory, reproduce.reproduce, shown.table, shown.figure, shown.published),
    "Speed": (bench.bench,),
}
"""The commands under each heading of the help."""
for heading, commands in COMMANDS.items():
    group = Group.create_ordered(heading)
    for command in commands:
        if isinstance(command, App):
            command.group = group
            app.command(command)
        else:
            app.command(command, name="eval" if command is evaluate.evaluate else None, group=group)
app["--help"].group = app["--version"].group = Group.create_ordered("Options")


def _reflow(app: App) -> None:
    """Join the lines of each paragraph of the commands' help, so that a terminal of any width can wrap them anew."""
    for name in app:
        if not name.startswith("-"):
            paragraphs = (" ".join(paragraph.split()) for paragraph in app[name].help.split("\n\n"))
            prose = (each for each in paragraphs if not each.startswith("Parameters --"))  # shown in panels instead
            app[name].help = "\n\n".join(prose)
            _reflow(app[name])


_reflow(app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0 done, 1 failed, 2 wrong use, 130 interrupted, 141 output no longer read."""
    warnings.formatwarning = lambda message, *_, **__: f"Warning: {message}\n"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # for a terminal without characters such as τ and −
    tokens = sys.argv[1:] if arguments is None else list(arguments)
    try:
        for name in unread(os.environ):
            say(f"{name} is in the environment, and no command reads it: is it a setting, mistyped?")
        app(tokens, exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except (UserError, CycloptsError) as error:
        return _fail(str(error), 2)
    except KeyboardInterrupt as error:
        return _fail(str(error) or "Interrupted.", 130)
    except BrokenPipeError:
        return _unread()
    except (OSError, RuntimeError, MemoryError) as error:
        return _fail(_trouble(error), 1)
    return 0


def _trouble(error: OSError | RuntimeError | MemoryError) -> str:
    """The sentence for an error that is not the user's fault, and how to go on."""
    if isinstance(error, MemoryError):
        return "This needs more memory than there is: use a smaller --batch, model or file."
    if type(error).__name__ == "AcceleratorError":  # torch's own class, but torch may not be imported
        what = first_line(error)
        return f"The GPU failed ({what}). What was saved is kept: the same command goes on, train with --resume."
    if not isinstance(error, OSError) or error.errno is None:
        return str(error) if str(error).endswith(".") else f"{type(error).__name__}: {error}"
    where = f"{error.filename} cannot be written or read" if error.filename else "A file cannot be written or read"
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = "free some space" if full else "mend that"
    return f"{where} ({error.strerror}): {remedy} and go on; what was saved before is kept."


def _unread() -> int:
    """The reader of the output has closed it, as `head` does: end silently, as other programs do."""
    with contextlib.suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    return 128 + 13


def _fail(sentence: str, code: int) -> int:
    if code != 130:
        console(stderr=True).print("[bold red]Error:[/]", end=" ")
    say(sentence)
    return code
