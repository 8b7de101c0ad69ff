"""Questions of the protocol `trace`, and texts of its verdicts."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from unreel.core.box import Box
from unreel.core.judgement import Label
from unreel.core.registry import LazyImport
from unreel.core.safe_text import sanitise_lines
from unreel.core.span import format_seconds
from unreel.core.verdict import TraceVerdict
from unreel.protocols.protocol import EVEN, ProtocolPrompt, ProtocolTexts, format_verdict_part
from unreel.protocols.trace.ground_truth import TraceTruth
from unreel.protocols.trace.metrics import WHOLE_FRAME

SOURCE = "DeepTraceReward, arXiv 2509.22646"
VIDEO_MARK = "<video> "
"""Position of the video in the fine-tuning prompts; to be removed for chat templates that place the video."""

# Printed as six quoted strings, one below the other; we join them with single spaces.
_ZERO_SHOT = (
    "Decide whether the video is AI-generated or real. If you think it is real, reply 'REAL'. "
    "Otherwise, reply 'FAKE' and provide the area coordinates in [x0, y0, x1, y1] format, the "
    "starting time of when you think it becomes fake, and an explanation. Encapsulate your answers "
    "using <coordinates> </coordinates>, <start_time> </start_time>, and <explanation> "
    "</explanation>."
)
_FINE_TUNING = (
    "<video> Decide whether the video is AI-generated or real by detecting unnatural parts. If you "
    "don't detect any unnatural parts and think the video is real, reply with REAL. Otherwise, if "
    "you detect any, reply with FAKE, and provide the coordinates of the unnatural parts in "
    "[x0, y0, x1, y1] format, the starting time of them, and an explanation."
)
_WITHOUT: Mapping[str, str] = MappingProxyType(
    {
        "fine-tuning-no-time": "[x0, y0, x1, y1] format, and an explanation.",
        "fine-tuning-no-explanation": "[x0, y0, x1, y1] format, and the starting time of them.",
        "fine-tuning-no-both": "[x0, y0, x1, y1] format.",
    }
)
_STEM = _FINE_TUNING.partition("[x0, y0, x1, y1]")[0]

PROMPTS: Mapping[str, ProtocolPrompt] = MappingProxyType(
    {
        "paper": ProtocolPrompt(text=_ZERO_SHOT, source=SOURCE),
        "fine-tuning": ProtocolPrompt(text=_FINE_TUNING, source=SOURCE, wording="derived"),
        **{
            name: ProtocolPrompt(text=_STEM + ending, source=SOURCE, wording="derived")
            for name, ending in _WITHOUT.items()
        },
    }
)
SENTENCE_PROMPTS = frozenset({"fine-tuning", *_WITHOUT})
"""Variants answered in sentences; the others are answered in tags."""
_NO_TIME = frozenset({"fine-tuning-no-time", "fine-tuning-no-both"})


def asks_onset_time(variant: str) -> bool:
    """Return whether a prompt variant of `trace` asks for the time at which the trace begins."""
    return variant not in _NO_TIME


def describe_box_position(box: Box) -> str:
    """Return a sentence with the position and area of a box, in percentages of the frame."""
    whole_frame = ", nearly the whole frame" if box.area >= WHOLE_FRAME else ""
    return (
        f"{box.x0:.0%} to {box.x1:.0%} across, {box.y0:.0%} to {box.y1:.0%} down"
        f" ({box.area:.0%} of the frame{whole_frame})"
    )


def _format_correct_answer(truth: TraceTruth) -> str:
    return "REAL" if truth.label is Label.REAL else "FAKE"


def _format_answer_from_probability(p_generated: Sequence[float], _prompt: str) -> str:
    return "FAKE" if p_generated[0] > EVEN else "REAL"


def _iter_verdict_details(verdict: TraceVerdict) -> Iterator[tuple[str, str]]:
    if verdict.label is Label.GENERATED:
        yield "from", format_verdict_part(verdict.start_us, format_seconds)
        yield "place", format_verdict_part(verdict.box, describe_box_position)
        yield "because", format_verdict_part(verdict.explanation, sanitise_lines)


WORDING: ProtocolTexts[TraceTruth, TraceVerdict] = ProtocolTexts(
    decides="label",
    say=str,
    right=_format_correct_answer,
    phrase=_format_answer_from_probability,
    details=_iter_verdict_details,
    teaches=SENTENCE_PROMPTS,
    write=LazyImport("unreel.protocols.trace.parser:format_trace_training_answer"),
)
