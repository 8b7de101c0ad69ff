"""Presentation of clips to a reviewer: a changed mark or size is a changed measurement."""

import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from unreel.core.question import Marks
from unreel.protocols.protocol import PROTOCOLS, get_protocol

if TYPE_CHECKING:  # a reader decodes, which asking alone does not need
    from unreel.core.failure import Failure
    from unreel.media.reader import MediaReader, SampledFrames

TimeFormat = Literal["seconds", "clock"]

LONGEST_SIDE: Final = 1024
"""Frames are scaled down to this before they are shown; models scale further on their own."""
LEAST_PIXELS: Final = 16 * 16
"""Frames are not scaled down to fewer, whatever is asked for."""

# What a space follows is a word of `trace`'s fine-tuning texts: their training puts the clip there.
_PLACE: Final = re.compile(r"(?:<video ?>)+(?! )")


def sample_frames(
    reader: "MediaReader", file: Path, *, sampling: str, max_pixels: int | None
) -> "SampledFrames | Failure":
    """Return the sampled frames of `file`, in the size in which reviewers see them."""
    return reader.frames(file, sampling=sampling, longest_side=LONGEST_SIDE, most_pixels=max_pixels)


def around_clips(prompt: str) -> tuple[str, str]:
    """Return the texts before and after the clips; if `prompt` marks no position, the clips come first."""
    before, *after = _PLACE.split(prompt, maxsplit=1)
    return (before, after[0]) if after else ("", prompt)


def shows_times(instrument: str, marks: Marks = "default") -> bool:
    """Return whether questions of that name, a protocol or another question, show each frame's timestamp."""
    if marks != "default":
        return marks == "on"
    return instrument in PROTOCOLS and get_protocol(instrument).shows_times


def mark_instant(at_s: Fraction, times: TimeFormat = "seconds") -> str:
    """Return the text before the frame that appears `at_s` seconds after the clip's first frame."""
    seconds = f"{float(at_s):.2f}"
    if times == "seconds":
        return f"{seconds} s"
    minutes, rest = divmod(Fraction(seconds), 60)  # after rounding: no minute has a second 60
    return f"{minutes:02d}:{float(rest):05.2f}"


def mark_clip(number: int) -> str:
    """Return the text before clip `number`, counted from 1, if several clips are shown."""
    return f"Video {number}:"
