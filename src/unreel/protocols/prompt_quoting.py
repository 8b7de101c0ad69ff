"""Quoting of untrusted text in a prompt: on one line, so that it cannot pass for the prompt's text."""

import re
from typing import Final

LONGEST: Final = 8_000
"""Most characters of one such text; an explanation is a sentence or two."""

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


def quote_for_prompt(text: str) -> str:
    """Return `text` for a prompt: one line of at most `LONGEST` characters, without turn markers.

    Line breaks, direction marks and invisible characters become spaces. Other texts are unchanged,
    so that earlier questions stay the same.
    """
    cut = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return _MARKER.sub(" ", _NOT_ON_A_LINE.sub(" ", cut))
