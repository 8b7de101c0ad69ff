"""Beliefs in the words that each instrument asks for, so that floors are read as models are."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from unreel.core.answer import Reply
from unreel.core.failure import Failure, FailureReason
from unreel.protocols.realism.prompts import TERMS, VERBAL_PROMPTS
from unreel.reviewers.contract import Sheet

_EVEN: Final = 0.5
_SCORES: Final = 5


def phrase(sheet: Sheet, p_generated: Sequence[float]) -> Reply | Failure:
    """The answer of someone who holds each clip of `sheet` to be generated with that probability."""
    protocol = sheet.instrument.protocol
    match len(p_generated):
        case 1 if protocol in _ALONE:
            return Reply(text=_ALONE[protocol](sheet, p_generated[0]))
        case 2 if protocol == "preference":
            return Reply(text=_prefer(*p_generated))
        case n:
            asked = f"not asked: no floor can answer {sheet.instrument} about {n} clips"
            return Failure(FailureReason.REQUEST_REJECTED, asked)


def _accuse(_sheet: Sheet, p_generated: float) -> str:
    return "FAKE" if p_generated > _EVEN else "REAL"


def _judge(_sheet: Sheet, p_generated: float) -> str:
    return f"<answer>{int(p_generated <= _EVEN)}</answer>"


def _rate(sheet: Sheet, p_generated: float) -> str:
    score = _SCORES - min(_SCORES - 1, int(p_generated * _SCORES))
    words = TERMS[score - 1] if sheet.condition.prompt in VERBAL_PROMPTS else str(score)
    return f"<answer>{words}</answer>"


def _prefer(first: float, second: float) -> str:
    if first == second:
        return "1" if first <= _EVEN else "2"
    return "1" if first < second else "2"


_ALONE: Final[Mapping[str, Callable[[Sheet, float], str]]] = {
    "trace": _accuse,
    "reality": _judge,
    "realism": _rate,
}
