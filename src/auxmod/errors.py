"""The one exception that means "the user can mend this", and two helpers. It imports nothing."""


class UserError(ValueError):
    """A mistake the user can correct; the message is the whole sentence the user reads (exit code 2)."""


def require(condition: bool, sentence: str) -> None:
    """Raise :class:`UserError` with ``sentence`` unless ``condition`` holds."""
    if not condition:
        raise UserError(sentence)


def first_line(error: BaseException, otherwise: str = "nothing more is known") -> str:
    """The first line of an error's message, or ``otherwise`` if the message is empty."""
    return (str(error).strip().splitlines() or [otherwise])[0]
