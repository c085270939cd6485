"""Random test input: mistyped texts, values of any kind, and objects with something changed in them."""

import copy
import os
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from auxmod.errors import UserError

TIMES = int(os.environ.get("FUZZ", "1"))
TRIED: Counter[str] = Counter()


def cases(count: int) -> Any:
    health = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    return settings(max_examples=count * TIMES, derandomize=TIMES == 1, suppress_health_check=health)


def counted(name: str) -> None:
    TRIED[name] += 1


ODD = ["", " ", "nan", "inf", "-0", "1e400", "1e-400", "9" * 5000, "0x10", "1_0", "٣", "½", "\0", "-", ":", ",", "log"]


def number(chance: random.Random) -> str:
    """The text of a number, or of something that is nearly one."""
    kind = chance.randrange(5)
    if kind == 0:
        return chance.choice(ODD)
    if kind == 1:
        return str(chance.uniform(-2, 2))
    return str(chance.randrange(-3, 12) if kind < 4 else chance.randrange(-(10**20), 10**20))


def typed(chance: random.Random) -> str:
    """A text that somebody may type for a range, often a wrong one."""
    kind = chance.randrange(4)
    if kind == 0:
        return "".join(chance.choice("0123456789.:,;-e_ log☃\n") for _ in range(chance.randrange(12)))
    if kind == 1:
        return ",".join(
            ":".join(number(chance) for _ in range(chance.randrange(1, 4))) for _ in range(chance.randrange(4))
        )
    return ":".join(number(chance) for _ in range(chance.randrange(1, 5)))


def chances(name: str, count: int) -> Iterator[random.Random]:
    """Yield ``count`` · FUZZ random generators, counted in TRIED: the same each time, or new ones if FUZZ is not 1."""
    seed = 0 if TIMES == 1 else random.SystemRandom().randrange(2**32)
    for case in range(count * TIMES):
        TRIED[name] += 1
        yield random.Random(f"{name} {seed} {case}")


def refused(error: UserError, words: str = "") -> None:
    assert words in str(error), error
    assert str(error).rstrip().endswith((".", ")")), error


NUMBERS = st.integers().map(str) | st.floats().map(str) | st.sampled_from(ODD)
RANGE = st.lists(NUMBERS, min_size=1, max_size=3).map(":".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def changed(draw: st.DrawFn, value: dict[str, Any]) -> dict[str, Any]:
    """A JSON object with one to three changes: a leaf or a larger part replaced, removed or added."""
    out = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        place: Any = out
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = draw(st.sampled_from([*keys, "new"] if isinstance(place, dict) else keys)) if keys else "new"
            if isinstance(place, dict) and key not in place:
                place[key] = draw(JSON)
                break
            if isinstance(place[key], dict | list) and place[key] and draw(st.booleans()):
                place = place[key]
                continue
            if isinstance(place, dict) and draw(st.integers(0, 4)) == 0:
                del place[key]
            else:
                place[key] = draw(JSON | st.just(2**60) | st.just(1.5) | st.just(-1))
            break
    return out
