"""Texts for verdicts of `preference`."""

from collections.abc import Sequence
from typing import Final

from unreel.core.verdict import Position, PreferenceVerdict
from unreel.protocols.preference.prompts import TAGGED_PROMPTS
from unreel.protocols.space import BoxSpace
from unreel.protocols.verdict_text import EVEN, ProtocolTexts

_TAUGHT: Final = frozenset({"paper"})
"""Prompts for training. The others ask for missing reasoning, or for 1 or 0 about two clips."""


def _format_position(real: Position) -> str:
    return f"the {real.value} is real"


def _format_correct_answer(truth: Position) -> str:
    return "1" if truth is Position.FIRST else "2"


def _format_answer_from_probability(p_generated: Sequence[float], prompt: str) -> str:
    first, second = p_generated
    is_first = first <= EVEN if first == second else first < second
    said = "1" if is_first else "2"
    return f"<answer>{said}</answer>" if prompt in TAGGED_PROMPTS else said


def _format_training_answer(truth: Position, _prompt: str, _space: BoxSpace | None) -> str:
    return _format_correct_answer(truth)


WORDING: Final[ProtocolTexts[Position, PreferenceVerdict]] = ProtocolTexts(
    decides="real",
    say=_format_position,
    right=_format_correct_answer,
    phrase=_format_answer_from_probability,
    teaches=_TAUGHT,
    write=_format_training_answer,
)
