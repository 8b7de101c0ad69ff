"""Presentation of clips and of quoted text to a reviewer: a changed mark or size is a changed measurement."""

import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from unreel.core.question import Marks
from unreel.protocols.protocol import PROTOCOLS, get_protocol

if TYPE_CHECKING:
    from unreel.core.failure import Failure
    from unreel.media.reader import MediaReader, SampledFrames


LONGEST: Final = 8_000
"""Maximum number of characters of one such text; an explanation is a sentence or two."""

# Written out, because what Unicode calls a format character changes with Python's release, and with it
# would change which prompts were asked. The two joiners stay: Persian and emoji are spelt with them.
_NOT_ON_A_LINE: Final = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # controls, every newline of ASCII and Latin-1 among them
    "\u2028\u2029"  # line and paragraph separators
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # direction
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u3164\ufeff\uffa0"  # unseen
    "\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # notes, and letters that nobody sees
    "\ud800-\udfff"  # half characters
    "]"
)
_MARKER: Final = re.compile(r"(?<=<)(?=[^\s\d=<-])|(?<=\[)(?=/?[A-Z_]{2,20}\])")
"""After the bracket of what may be a tag, or a model's own mark such as `<|im_end|>` and `[INST]`."""


def quote_text_for_prompt(text: str) -> str:
    """Return `text` in a form that is safe to quote in a prompt: one line without turn markers.

    Line breaks, direction marks and invisible characters become spaces, and the text is cut to
    `LONGEST` characters. Other texts are unchanged, so that earlier questions stay the same.
    """
    cut = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return _MARKER.sub(" ", _NOT_ON_A_LINE.sub(" ", cut))


TimeFormat = Literal["seconds", "clock"]

LONGEST_SIDE: Final = 1024
"""Frames are scaled down to this before they are shown; models scale further on their own."""
LEAST_PIXELS: Final = 16 * 16
"""Frames are not scaled down to fewer, whatever is asked for."""

# What a space follows is a word of `trace`'s fine-tuning texts: their training puts the clip there.
_PLACE: Final = re.compile(r"(?:<video ?>)+(?! )")


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
    minutes, rest = divmod(Fraction(seconds), 60)  # after rounding: no minute has a second 60
    return f"{minutes:02d}:{float(rest):05.2f}"


def format_question_clip_heading(number: int) -> str:
    """Return the heading of clip `number`, counted from 1, for a question with several clips."""
    return f"Video {number}:"
