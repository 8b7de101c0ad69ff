"""The questions of `trace`, and the answers that a reviewer is trained to give."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from unreel.core.errors import UnknownNameError
from unreel.core.trace import Trace
from unreel.protocols.protocol import Prompt
from unreel.protocols.space import BoxSpace

SOURCE: Final = "DeepTraceReward, arXiv 2509.22646"
VIDEO_MARK: Final = "<video> "
"""Where the fine-tuning prompts put the video; chat templates that place it themselves drop the mark."""

# Printed as six quoted strings, one under the other; single spaces between them are our reading.
_ZERO_SHOT: Final = (
    "Decide whether the video is AI-generated or real. If you think it is real, reply 'REAL'. "
    "Otherwise, reply 'FAKE' and provide the area coordinates in [x0, y0, x1, y1] format, the "
    "starting time of when you think it becomes fake, and an explanation. Encapsulate your answers "
    "using <coordinates> </coordinates>, <start_time> </start_time>, and <explanation> "
    "</explanation>."
)
_FINE_TUNING: Final = (
    "<video> Decide whether the video is AI-generated or real by detecting unnatural parts. If you "
    "don't detect any unnatural parts and think the video is real, reply with REAL. Otherwise, if "
    "you detect any, reply with FAKE, and provide the coordinates of the unnatural parts in "
    "[x0, y0, x1, y1] format, the starting time of them, and an explanation."
)
_WITHOUT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "fine-tuning-no-time": "[x0, y0, x1, y1] format, and an explanation.",
        "fine-tuning-no-explanation": "[x0, y0, x1, y1] format, and the starting time of them.",
        "fine-tuning-no-both": "[x0, y0, x1, y1] format.",
    }
)
_STEM: Final = _FINE_TUNING.partition("[x0, y0, x1, y1]")[0]

PROMPTS: Final[Mapping[str, Prompt]] = MappingProxyType(
    {
        "paper": Prompt(text=_ZERO_SHOT, source=SOURCE),
        "fine-tuning": Prompt(text=_FINE_TUNING, source=SOURCE, wording="derived"),
        **{
            name: Prompt(text=_STEM + ending, source=SOURCE, wording="derived")
            for name, ending in _WITHOUT.items()
        },
    }
)
SENTENCE_PROMPTS: Final = frozenset({"fine-tuning", *_WITHOUT})
"""Variants answered in sentences; the others are answered in tags."""

_NO_TIME: Final = frozenset({"fine-tuning-no-time", "fine-tuning-no-both"})
_NO_EXPLANATION: Final = frozenset({"fine-tuning-no-explanation", "fine-tuning-no-both"})


def target(trace: Trace | None, *, space: BoxSpace, variant: str = "fine-tuning") -> str:
    """The answer to train towards for one annotation row; `None` stands for a real clip.

    The box is the first of the track, in whole units of `space` (never less than one wide and high);
    the time is the span's start in seconds, to two places. What the row does not hold is left out.
    """
    if variant not in SENTENCE_PROMPTS:
        kind = "fine-tuning prompt"
        raise UnknownNameError(kind, variant, sorted(SENTENCE_PROMPTS))
    if trace is None:
        return "REAL. The video is real. There is no unnatural part."
    sentences = ["FAKE. The video is AI-generated."]
    if trace.track:
        when = "" if variant in _NO_TIME else f" starting {_seconds(trace.span.start_us)} seconds"
        sentences.append(f"The unnatural part is at {_whole_box(trace, space)}{when}.")
    if trace.explanation and variant not in _NO_EXPLANATION:
        sentences.append(f"The reason is because {trace.explanation}")
    return " ".join(sentences)


def _whole_box(trace: Trace, space: BoxSpace) -> str:
    x0, y0, x1, y1 = (round(corner) for corner in space.corners(trace.track[0].box))
    x0, y0 = min(x0, space.width - 1), min(y0, space.height - 1)
    return str([x0, y0, max(x1, x0 + 1), max(y1, y0 + 1)])


def _seconds(start_us: int) -> str:
    return f"{start_us / 1_000_000:.2f}".rstrip("0").rstrip(".")
