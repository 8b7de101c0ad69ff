"""The box of a `trace` answer, in the forms in which models write one."""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from unreel.core.box import Box
from unreel.core.verdict import Unparsed, UnparsedReason
from unreel.protocols.protocol import Mode
from unreel.protocols.space import BoxSpace
from unreel.protocols.text import SHORT, unparsed, unwrapped

# Bounded, so that no number overflows a column of 64 bits and no digit run costs time.
NUMBER: Final = r"[0-9]{1,12}(?:\.[0-9]{1,12})?"
_CORNER: Final = rf"\s*(-?{NUMBER})\s*"
_EXACT: Final = re.compile(rf"\[{_CORNER},{_CORNER},{_CORNER},{_CORNER}\]")
_ANY_NUMBER: Final = re.compile(rf"(?<![\w.])[-+]?{NUMBER}(?!\w|\.[0-9])")
_GROUP: Final = re.compile(r"\[[^\[\]]{1,100}\]|\([^()]{1,100}\)")
_POINTS: Final = re.compile(
    r"\(([^()]{1,40})\)\W{0,3}(?:(?:to|and|-)\W{0,3})?(?:[a-z -]{0,20})\(([^()]{1,40})\)"
)
_KEYED: Final = re.compile(
    rf"\b(?P<key>[a-z]{{1,6}}_?[a-z]{{0,6}}[0-2]?)\b[\"']?\s{{0,3}}[:=]\s{{0,3}}(?P<number>[-+]?{NUMBER})"
)
_SIZE_ORDER: Final = re.compile(
    r"\bx\W{1,4}y\W{1,4}w(?:idth)?\W{1,4}h(?:eight)?\b|\bxywh\b", re.IGNORECASE
)
_Y_FIRST: Final = re.compile(
    r"\by_?(?:min|1|0)\W{1,4}x_?(?:min|1|0)\b|(?<![a-z])box_2d\b|\byxyx\b", re.IGNORECASE
)
_N: Final = 4
_PERCENT: Final = BoxSpace("percent", 100, 100)
_LEFT: Final = ("x0", "xmin", "x_min", "left", "x")
_TOP: Final = ("y0", "ymin", "y_min", "top", "y")
_RIGHT: Final = ("x2", "xmax", "x_max", "right")
_BOTTOM: Final = ("y2", "ymax", "y_max", "bottom")
_WIDTH: Final = ("width", "w")
_HEIGHT: Final = ("height", "h")


def read_box(piece: str, mode: Mode, *, space: BoxSpace) -> Box | Unparsed:
    """The box that `piece` writes, read in `space` and clipped to the frame.

    `strict` takes four corners in brackets. `lenient` also takes corners by name, a corner with width and
    height, percentages, and the first of several boxes. What is written with y first, or in parts of 1
    where the space counts otherwise, is refused: as corners it would be another box.
    """
    if len(piece) > SHORT:
        return unparsed(UnparsedReason.MALFORMED, piece)
    if exact := _EXACT.fullmatch(piece):
        return _in_space([Fraction(corner) for corner in exact.groups()], space, piece)
    return (
        _loose(unwrapped(piece), space)
        if mode == "lenient"
        else unparsed(UnparsedReason.MALFORMED, piece)
    )


def _loose(piece: str, space: BoxSpace) -> Box | Unparsed:
    if _Y_FIRST.search(piece):
        return unparsed(UnparsedReason.MALFORMED, piece)
    keyed = {found["key"].lower(): Fraction(found["number"]) for found in _KEYED.finditer(piece)}
    if len(keyed) >= _N:
        corners = _by_name(keyed)
        if corners is None:
            return unparsed(UnparsedReason.MALFORMED, piece)
        return _in_space(corners, space, piece)
    numbers = _first_four(piece)
    if isinstance(numbers, Unparsed):
        return numbers
    if _SIZE_ORDER.search(piece):
        left, top, width, height = numbers
        numbers = [left, top, left + width, top + height]
    return _in_space(numbers, _PERCENT if "%" in piece else space, piece)


def _by_name(keyed: Mapping[str, Fraction]) -> list[Fraction] | None:
    left, top = _first(keyed, _LEFT, "x1"), _first(keyed, _TOP, "y1")
    if left is None or top is None:
        return None
    # Beside x0 the other side is x1; beside x1 it is x2.
    right = _first(keyed, _RIGHT, "x1" if any(key in keyed for key in _LEFT) else "")
    bottom = _first(keyed, _BOTTOM, "y1" if any(key in keyed for key in _TOP) else "")
    width, height = _first(keyed, _WIDTH, ""), _first(keyed, _HEIGHT, "")
    if right is not None and bottom is not None:
        return [left, top, right, bottom]
    if width is not None and height is not None:
        return [left, top, left + width, top + height]
    return None


def _first(keyed: Mapping[str, Fraction], names: Sequence[str], last: str) -> Fraction | None:
    return next((keyed[name] for name in (*names, last) if name in keyed), None)


def _first_four(piece: str) -> list[Fraction] | Unparsed:
    for group in _GROUP.finditer(piece):
        numbers = _ANY_NUMBER.findall(group[0])
        if len(numbers) == _N:
            return [Fraction(number) for number in numbers]
    if points := _POINTS.search(piece):
        numbers = _ANY_NUMBER.findall(points[1]) + _ANY_NUMBER.findall(points[2])
    else:
        numbers = _ANY_NUMBER.findall(piece)
    if len(numbers) == _N:
        return [Fraction(number) for number in numbers]
    several = len(numbers) > _N and len(numbers) % _N == 0
    return unparsed(UnparsedReason.AMBIGUOUS if several else UnparsedReason.MALFORMED, piece)


def _in_space(corners: Sequence[Fraction], space: BoxSpace, piece: str) -> Box | Unparsed:
    if max(space.width, space.height) > 1 and _are_parts(corners):
        return unparsed(UnparsedReason.OUT_OF_RANGE, piece)
    return space.box(list(corners)) or unparsed(UnparsedReason.OUT_OF_RANGE, piece)


def _are_parts(corners: Sequence[Fraction]) -> bool:
    """Whether the numbers are parts of 1, not counts: none above 1, and one of them broken."""
    return max(corners) <= 1 and any(corner.denominator > 1 for corner in corners)
