"""The command line: arguments in, printing out, no logic. Commands import torch late, so that help is quick."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter

from auxmod import __version__
from auxmod.cli import bench, demo, evaluate, grid, reproduce, runs, search, sweep, theory, train
from auxmod.cli.display import console
from auxmod.errors import UserError

app = App(
    name="auxmod",
    version=__version__,
    help="Train Transformers to compute (x_1 + … + x_N) mod q, with an auxiliary modulus.",
    help_format="plaintext",
    default_parameter=Parameter(show_env_var=False),
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
for command in (
    demo.demo,
    train.train,
    sweep.sweep,
    grid.grid,
    search.search,
    evaluate.evaluate,
    evaluate.predict,
    evaluate.data,
    bench.bench,
    theory.theory,
    reproduce.reproduce,
    reproduce.table,
    reproduce.figure,
    reproduce.published,
):
    app.command(command, name="eval" if command is evaluate.evaluate else None)
app.command(runs.app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; exit 0 done, 1 failed, 2 wrong use, 130 interrupted after saving."""
    warnings.formatwarning = lambda message, *_, **__: f"Warning: {message}\n"
    tokens = sys.argv[1:] if arguments is None else list(arguments)
    try:
        app(tokens, exit_on_error=False, print_error=False)
    except (UserError, CycloptsError) as error:
        return _fail(str(error), 2)
    except KeyboardInterrupt as error:
        return _fail(str(error) or "Interrupted.", 130)
    except (OSError, RuntimeError) as error:
        return _fail(f"{type(error).__name__}: {error}" if not str(error).endswith(".") else str(error), 1)
    return 0


def _fail(sentence: str, code: int) -> int:
    out = console(stderr=True)
    if code != 130:
        out.print("[bold red]Error:[/]", end=" ")
    out.print(sentence, markup=False, soft_wrap=True)
    return code
