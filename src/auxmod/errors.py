"""The one exception that means "the user can mend this", and a line of any other. It imports nothing."""


class UserError(ValueError):
    """A mistake in what was asked for; its message is the whole sentence the user reads (exit code 2)."""


def require(condition: bool, sentence: str) -> None:
    """Raise :class:`UserError` with ``sentence`` unless ``condition`` holds."""
    if not condition:
        raise UserError(sentence)


def first_line(error: BaseException, otherwise: str = "nothing more is known") -> str:
    """The first line of what an error says; where it says nothing, ``otherwise``."""
    return (str(error).strip().splitlines() or [otherwise])[0]
