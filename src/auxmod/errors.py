"""The one exception that means "the user can mend this". Anything may import it; it imports nothing."""


class UserError(ValueError):
    """A mistake in what was asked for; its message is the whole sentence the user reads (exit code 2)."""


def require(condition: bool, sentence: str) -> None:
    """Raise :class:`UserError` with ``sentence`` unless ``condition`` holds."""
    if not condition:
        raise UserError(sentence)
