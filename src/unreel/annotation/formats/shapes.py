"""Boxes of other tools, and untrusted numbers and words, each checked before it is used."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from unreel.annotation.formats.document import MOST_FRAMES, MOST_LETTERS
from unreel.core.box import Box
from unreel.core.errors import InvalidValueError

MOST_PIXELS: Final = 65_536
"""Across or down."""
_LEAST: Final = 1e-9
"""Minimum side of a box, as a fraction of the frame."""


def clip_box_to_frame(x0: float, y0: float, x1: float, y1: float) -> Box:
    """Return the box clipped to the frame, as fractions of it: tools allow boxes past the edge."""
    inside = [min(1.0, max(0.0, edge)) for edge in (x0, y0, x1, y1)]
    if not (inside[2] - inside[0] > _LEAST and inside[3] - inside[1] > _LEAST):
        msg = f"a box from {x0:g}, {y0:g} to {x1:g}, {y1:g} has no area in the frame. Draw it again"
        raise InvalidValueError(msg)
    return Box(*inside)


def parse_number(value: object, what: str) -> float:
    """Parse a finite number from a JSON number or a string."""
    try:
        found = float(value) if isinstance(value, int | float | str) else math.nan
    except (ValueError, OverflowError):
        found = math.nan
    if isinstance(value, bool) or not math.isfinite(found):
        msg = f"{what} is {show(value)}. Write a number"
        raise InvalidValueError(msg)
    return found


def parse_count(value: object, what: str, *, most: int = MOST_FRAMES) -> int:
    """Parse an integer from 0 to `most` from a JSON number or a string."""
    found = parse_number(value, what)
    if not (found == int(found) and 0 <= found <= most):
        msg = f"{what} is {show(value)}. Write a whole number from 0 to {most}"
        raise InvalidValueError(msg)
    return int(found)


def parse_rate(value: object) -> Fraction | None:
    """Parse frames per second from `30`, `29.97` or `30000/1001`; return `None` if invalid.

    29.97, 23.976 and 59.94 are read as the exact broadcast rates, which tools round.
    """
    try:
        text = str(value) if isinstance(value, int | float | str) else ""
        found = Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None
    if not 0 < found <= 1000:  # noqa: PLR2004  cameras for science are faster, annotators are not
        return None
    broadcast = Fraction(round(found) * 1000, 1001)
    near = abs(found - broadcast) < Fraction(1, 200)
    return broadcast if near and found.denominator != 1 else found.limit_denominator(1001)


def parse_text(value: object) -> str:
    """Return a text of limited length; "" for any other value."""
    return value[:MOST_LETTERS] if isinstance(value, str) else ""


def require_mapping(value: object, what: str) -> Mapping[str, Any]:
    """Return `value` if it is a JSON object; otherwise raise `InvalidValueError`."""
    if not isinstance(value, dict):
        msg = f"{what} is {show(value)}. Write an object"
        raise InvalidValueError(msg)
    return value


def show(value: object) -> str:
    """Format an untrusted value for a message: at most 60 characters, quoted, in ASCII."""
    return f"{str(value)[:60]!a}"
