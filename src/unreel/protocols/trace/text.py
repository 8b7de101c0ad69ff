"""Texts for verdicts of `trace`."""

from collections.abc import Iterator, Sequence
from typing import Final

from unreel.core.box import Box
from unreel.core.judgement import Label
from unreel.core.registry import LazyImport
from unreel.core.safe_text import sanitise_lines
from unreel.core.span import format_seconds
from unreel.core.verdict import TraceVerdict
from unreel.protocols.trace.figures import WHOLE_FRAME
from unreel.protocols.trace.prompts import SENTENCE_PROMPTS
from unreel.protocols.trace.truth import TraceTruth
from unreel.protocols.verdict_text import EVEN, ProtocolTexts, format_label, format_or_missing


def describe_box(box: Box) -> str:
    """Return a text that describes a box in percentages of the frame."""
    whole = ", nearly the whole frame" if box.area >= WHOLE_FRAME else ""
    return (
        f"{box.x0:.0%} to {box.x1:.0%} across, {box.y0:.0%} to {box.y1:.0%} down"
        f" ({box.area:.0%} of the frame{whole})"
    )


def _format_correct_answer(truth: TraceTruth) -> str:
    return "REAL" if truth.label is Label.REAL else "FAKE"


def _format_answer_from_probability(p_generated: Sequence[float], _prompt: str) -> str:
    return "FAKE" if p_generated[0] > EVEN else "REAL"


def _iter_verdict_details(verdict: TraceVerdict) -> Iterator[tuple[str, str]]:
    if verdict.label is Label.GENERATED:
        yield "from", format_or_missing(verdict.start_us, format_seconds)
        yield "place", format_or_missing(verdict.box, describe_box)
        yield "because", format_or_missing(verdict.explanation, sanitise_lines)


WORDING: Final[ProtocolTexts[TraceTruth, TraceVerdict]] = ProtocolTexts(
    decides="label",
    say=format_label,
    right=_format_correct_answer,
    phrase=_format_answer_from_probability,
    details=_iter_verdict_details,
    teaches=SENTENCE_PROMPTS,
    write=LazyImport("unreel.protocols.trace.training_answers:write"),
)
