"""`preference` in words."""

from collections.abc import Sequence
from typing import Final

from unreel.core.verdict import Position, PreferenceVerdict
from unreel.protocols.wording import EVEN, Wording


def _say(real: Position) -> str:
    return f"the {real.value} is real"


def _right(truth: Position) -> str:
    return "1" if truth is Position.FIRST else "2"


def _phrase(p_generated: Sequence[float], _prompt: str) -> str:
    first, second = p_generated
    if first == second:
        return "1" if first <= EVEN else "2"
    return "1" if first < second else "2"


WORDING: Final[Wording[Position, PreferenceVerdict]] = Wording(
    decides="real", say=_say, right=_right, phrase=_phrase
)
