"""The questions of `trace`; the answers that a reviewer is trained to give are in `teaching`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from unreel.protocols.protocol import ProtocolPrompt

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

PROMPTS: Final[Mapping[str, ProtocolPrompt]] = MappingProxyType(
    {
        "paper": ProtocolPrompt(text=_ZERO_SHOT, source=SOURCE),
        "fine-tuning": ProtocolPrompt(text=_FINE_TUNING, source=SOURCE, wording="derived"),
        **{
            name: ProtocolPrompt(text=_STEM + ending, source=SOURCE, wording="derived")
            for name, ending in _WITHOUT.items()
        },
    }
)
SENTENCE_PROMPTS: Final = frozenset({"fine-tuning", *_WITHOUT})
"""Variants answered in sentences; the others are answered in tags."""
_NO_TIME: Final = frozenset({"fine-tuning-no-time", "fine-tuning-no-both"})


def asks_time(variant: str) -> bool:
    """Return whether the prompt of that name asks for the onset of a trace."""
    return variant not in _NO_TIME
