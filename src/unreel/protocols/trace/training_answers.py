"""The answers that a reviewer is trained to give to the fine-tuning questions of `trace`."""

from typing import Final

from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Label
from unreel.core.verdict import Unparsed
from unreel.protocols.protocol import ParserOptions
from unreel.protocols.space import BoxSpace
from unreel.protocols.trace.parser import parse
from unreel.protocols.trace.prompts import asks_time
from unreel.protocols.trace.truth import TraceTruth
from unreel.protocols.verdict_text import join_lines, require_read_back

_NO_EXPLANATION: Final = frozenset({"fine-tuning-no-explanation", "fine-tuning-no-both"})
_COARSEST: Final = 2
"""Units across: with fewer, every box in whole units is the whole frame."""


def write(truth: TraceTruth, prompt: str, space: BoxSpace | None) -> str:
    """Write the training answer for one annotation row.

    The box is the first box of the track, in whole units of `space` (at least one unit wide and
    high). The time is the start of the span in seconds, to two decimal places. Parts that are
    missing in the row are excluded.
    """
    if space is None or min(space.width, space.height) < _COARSEST:
        msg = "a box is taught in whole units. Declare a space that has them, for example permille"
        raise InvalidValueError(msg)
    if truth.label is Label.REAL:
        return "REAL. The video is real. There is no unnatural part."
    if truth.start_us is not None and truth.start_us >= truth.duration_us:
        msg = "its trace begins after the clip's end. Correct the row"
        raise InvalidValueError(msg)
    reason = "" if prompt in _NO_EXPLANATION else join_lines(truth.explanation)
    sentences = ["FAKE. The video is AI-generated."]
    if truth.box is not None:
        start_us = truth.start_us if asks_time(prompt) else None
        when = "" if start_us is None else f" starting {_format_seconds(start_us)} seconds"
        sentences.append(f"The unnatural part is at {_format_integer_box(truth.box, space)}{when}.")
    if reason:
        sentences.append(f"The reason is because {reason}")
    text = " ".join(sentences)
    verdict = parse(text, ParserOptions(prompt=prompt, space=space))
    said = "" if isinstance(verdict.explanation, Unparsed) else verdict.explanation
    require_read_back(
        said=(verdict.label, isinstance(verdict.box, Box), said),
        meant=(truth.label, truth.box is not None, reason),
    )
    return text


def _format_integer_box(box: Box, space: BoxSpace) -> str:
    x0, y0, x1, y1 = (round(corner) for corner in space.corners(box))
    x0, y0 = min(x0, space.width - 1), min(y0, space.height - 1)
    return str([x0, y0, max(x1, x0 + 1), max(y1, y0 + 1)])


def _format_seconds(start_us: int) -> str:
    return f"{start_us / 1_000_000:.2f}".rstrip("0").rstrip(".")
