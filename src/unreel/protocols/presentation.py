"""Presentation of clips and of quoted text to a reviewer: a changed mark or size is a changed measurement."""

import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from unreel.core.question import Marks
from unreel.protocols.protocol import PROTOCOLS, get_protocol

if TYPE_CHECKING:
    from unreel.core.failure import Failure
    from unreel.media.reader import MediaReader, SampledFrames


LONGEST = 8_000
"""Maximum number of characters of a quoted text; an explanation has one or two sentences."""

# Listed explicitly, because Unicode's class of format characters differs between Python releases,
# which would change prompts. The two joiners are not listed, because Persian and emoji need them.
_NOT_ON_A_LINE = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # controls, including all newlines of ASCII and Latin-1
    "\u2028\u2029"  # line and paragraph separators
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # direction marks
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u3164\ufeff\uffa0"  # invisible
    "\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # annotation and tag characters
    "\ud800-\udfff"  # surrogates
    "]"
)
_MARKER = re.compile(r"(?<=<)(?=[^\s\d=<-])|(?<=\[)(?=/?[A-Z_]{2,20}\])")
"""Position after the bracket of a possible tag or special token, such as `<|im_end|>` and `[INST]`."""


def quote_text_for_prompt(text: str) -> str:
    """Return `text` in a form that is safe to quote in a prompt: one line without turn markers.

    Line breaks, direction marks and invisible characters become spaces, and the text is cut to
    `LONGEST` characters. Other texts are unchanged, so that earlier questions stay the same.
    """
    cut = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return _MARKER.sub(" ", _NOT_ON_A_LINE.sub(" ", cut))


TimeFormat = Literal["seconds", "clock"]

LONGEST_SIDE = 1024
"""Maximum side of shown frames in pixels; larger frames are scaled down, and models may scale them again."""
MIN_PIXELS = 16 * 16
"""Minimum of the setting `max_pixels`, to which frames are scaled down."""

# Before a space, the mark is text of `trace`'s fine-tuning prompts, where training puts the clip.
_PLACE = re.compile(r"(?:<video ?>)+(?! )")


def sample_shown_frames(
    reader: "MediaReader", file: Path, *, sampling: str, max_pixels: int | None
) -> "SampledFrames | Failure":
    """Read the frames of a video that a sampling plan selects, scaled to the size shown to reviewers."""
    return reader.frames(file, sampling=sampling, longest_side=LONGEST_SIDE, most_pixels=max_pixels)


def split_prompt_at_clips(prompt: str) -> tuple[str, str]:
    """Return the texts before and after the clips; if `prompt` marks no position, the clips come first."""
    before, *after = _PLACE.split(prompt, maxsplit=1)
    return (before, after[0]) if after else ("", prompt)


def shows_frame_times(protocol: str, marks: Marks = "default") -> bool:
    """Return whether questions show frame times: `marks`, else the protocol's default, else no."""
    if marks != "default":
        return marks == "on"
    return protocol in PROTOCOLS and get_protocol(protocol).shows_times


def format_frame_time(at_s: Fraction, times: TimeFormat = "seconds") -> str:
    """Format the time of a frame, `at_s` seconds after the first frame, as text before the frame."""
    seconds = f"{float(at_s):.2f}"
    if times == "seconds":
        return f"{seconds} s"
    minutes, rest = divmod(Fraction(seconds), 60)  # rounded before, so that seconds stay below 60
    return f"{minutes:02d}:{float(rest):05.2f}"


def format_question_clip_heading(number: int) -> str:
    """Return the heading of clip `number`, counted from 1, for a question with several clips."""
    return f"Video {number}:"
