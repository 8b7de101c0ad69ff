"""Texts for verdicts of `reality`."""

from collections.abc import Iterator, Sequence
from typing import Final

from unreel.core.clip import Origin, Real
from unreel.core.verdict import RealityVerdict
from unreel.protocols.reality.prompts import CONFIDENCE_PROMPTS
from unreel.protocols.space import BoxSpace
from unreel.protocols.verdict_text import EVEN, ProtocolTexts, format_label, format_or_missing

_TAUGHT: Final = frozenset({"direct"})
"""Prompts for training. The others ask for missing reasoning or confidence."""


def _format_correct_answer(truth: Origin) -> str:
    return "1" if isinstance(truth, Real) else "0"


def _format_answer_from_probability(p_generated: Sequence[float], prompt: str) -> str:
    (p,) = p_generated
    answer = f"<answer>{int(p <= EVEN)}</answer>"
    if prompt not in CONFIDENCE_PROMPTS:
        return answer
    return f"{answer}<confidence>{100 * max(p, 1 - p):.2f}</confidence>"


def _iter_verdict_details(verdict: RealityVerdict) -> Iterator[tuple[str, str]]:
    if verdict.confidence is not None:
        yield "confidence", format_or_missing(verdict.confidence, "{:g} of 100".format)


def _format_training_answer(truth: Origin, _prompt: str, _space: BoxSpace | None) -> str:
    return f"<answer>{_format_correct_answer(truth)}</answer>"


WORDING: Final[ProtocolTexts[Origin, RealityVerdict]] = ProtocolTexts(
    decides="label",
    say=format_label,
    right=_format_correct_answer,
    phrase=_format_answer_from_probability,
    details=_iter_verdict_details,
    teaches=_TAUGHT,
    write=_format_training_answer,
)
