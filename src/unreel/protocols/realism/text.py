"""Texts for verdicts of `realism`."""

from collections.abc import Iterator, Sequence
from typing import Final

from unreel.core.judgement import Rating
from unreel.core.registry import LazyImport
from unreel.core.safe_text import sanitise_lines
from unreel.core.verdict import RealismVerdict
from unreel.protocols.realism.prompts import PROMPTS, TERMS, VERBAL_PROMPTS
from unreel.protocols.verdict_text import ProtocolTexts, format_or_missing

_SCORES: Final = len(TERMS)


def _format_score(score: int) -> str:
    return f"{score} of {_SCORES} ({TERMS[score - 1].lower()})"


def _format_correct_answer(truth: Rating) -> str:
    return str(truth.score)


def _format_answer_from_probability(p_generated: Sequence[float], prompt: str) -> str:
    score = _SCORES - min(_SCORES - 1, int(p_generated[0] * _SCORES))
    return f"<answer>{TERMS[score - 1] if prompt in VERBAL_PROMPTS else score}</answer>"


def _iter_verdict_details(verdict: RealismVerdict) -> Iterator[tuple[str, str]]:
    yield "problem", format_or_missing(verdict.problem, sanitise_lines)
    yield "in the scale's words", format_or_missing(verdict.adherence, sanitise_lines)
    if verdict.family is not None:
        yield "errors", format_or_missing(verdict.family, str)


WORDING: Final[ProtocolTexts[Rating, RealismVerdict]] = ProtocolTexts(
    decides="score",
    say=_format_score,
    right=_format_correct_answer,
    phrase=_format_answer_from_probability,
    details=_iter_verdict_details,
    teaches=frozenset(PROMPTS),
    write=LazyImport("unreel.protocols.realism.training_answers:write"),
)
