"""Sanitise untrusted text for terminals and pages: replace control characters with a visible mark."""

import re

MARK = "\ufffd"

_ACTS = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls: they start escape sequences and move the cursor
    r"\u2028\u2029"  # line separators
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # characters that change the text direction
    r"\xad\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # invisible
    r"\ud800-\udfff"  # surrogates: no encoding accepts them
)
_IN_LINES = re.compile(f"[{_ACTS}]")
_IN_A_LINE = re.compile(rf"[\t\n{_ACTS}]")


def sanitise_line(text: str) -> str:
    """Return `text` on one line, with control and invisible characters replaced by a mark."""
    return _IN_A_LINE.sub(MARK, text)


def sanitise_lines(text: str) -> str:
    """Return the text with control and invisible characters, except line feeds and tabs, marked."""
    return _IN_LINES.sub(MARK, text)
