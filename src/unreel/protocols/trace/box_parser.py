"""Parser of the box in an answer of the protocol `trace`."""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

from unreel.core.box import Box
from unreel.core.verdict import Unparsed, UnparsedReason
from unreel.protocols.answer_text import SHORT, strip_markup
from unreel.protocols.box_space import PERMILLE, BoxSpace
from unreel.protocols.protocol import Mode

# Bounded, so that no number overflows 64 bits, and long runs of digits are cheap.
NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,12})?"
_CORNER = rf"\s*(-?{NUMBER})\s*"
_EXACT = re.compile(rf"\[{_CORNER},{_CORNER},{_CORNER},{_CORNER}\]")
_ANY_NUMBER = re.compile(rf"(?<![\w.])[-+]?{NUMBER}(?!\w|\.[0-9])")
_GROUP = re.compile(r"\[[^\[\]]{1,100}\]|\([^()]{1,100}\)")
_POINTS = re.compile(
    r"\(([^()]{1,40})\)\W{0,3}(?:(?:to|and|-)\W{0,3})?(?:[a-z -]{0,20})\(([^()]{1,40})\)"
)
_AXIS = r"(?:_?(?:min|max|left|right|top|bottom|start|end|tl|br|cent(?:er|re)|[0-2c]))?"
_NAME = rf"(?:[xy]{_AXIS}|c_?[xy]|cent(?:er|re)[_\s]?[xy]|(?:box_)?(?:w|h|width|height)|left|top|right|bottom)"
_NAMED = re.compile(
    rf"(?<![a-z0-9-])(?P<name>{_NAME})[\"']?(?:\s{{0,3}}(?:[:=]|is\b|at\b)|(?=\s))\s{{0,3}}(?P<number>[-+]?{NUMBER})(?!\w|\.[0-9])",
    re.IGNORECASE,
)
_ORDER = re.compile(
    rf"(?<![a-z0-9-])({_NAME})[\"']?[,;\s/|]{{1,4}}[\"']?({_NAME})[\"']?[,;\s/|]{{1,4}}[\"']?({_NAME})[\"']?[,;\s/|]{{1,4}}[\"']?({_NAME})(?![a-z0-9])"
    r"|\b(?P<short>xyxy|xywh|yxyx|ltrb|ltwh|tlbr|cxcywh)\b",
    re.IGNORECASE,
)
_SHORT_ORDERS = {
    "xyxy": ("x0", "y0", "x1", "y1"),
    "ltrb": ("x0", "y0", "x1", "y1"),
    "yxyx": ("y0", "x0", "y1", "x1"),
    "tlbr": ("y0", "x0", "y1", "x1"),
    "xywh": ("x", "y", "w", "h"),
    "ltwh": ("x", "y", "w", "h"),
    "cxcywh": ("cx", "cy", "w", "h"),
}
_RANGES = re.compile(
    rf"\b(?P<first>[xy])\b[^0-9xy]{{0,12}}({NUMBER})\s{{0,3}}(?:-|\u2013|to|\.\.|until|and)\s{{0,3}}({NUMBER})"
    rf"[^0-9]{{0,12}}\b(?P<second>[xy])\b[^0-9xy]{{0,12}}({NUMBER})\s{{0,3}}(?:-|\u2013|to|\.\.|until|and)\s{{0,3}}({NUMBER})",
    re.IGNORECASE,
)
_CORNERS = re.compile(
    rf"\b(?P<y>top|bottom|upper|lower)[\s-]?(?P<x>left|right)[^0-9-]{{0,20}}({NUMBER})[^0-9-]{{1,5}}({NUMBER})",
    re.IGNORECASE,
)
_BY_SIZE = re.compile(
    r"\b(?:cent(?:er|re)\w{0,2}|middle|width|height|size|wide|tall|radius)\b|中心|宽|高",
    re.IGNORECASE,
)
_BY_CENTRE = re.compile(r"\b(?:cent(?:er|re)\w{0,2}|middle)\b|中心", re.IGNORECASE)
_ELSEWHERE = re.compile(r"(?<![a-z])box_2d\b", re.IGNORECASE)
"""Gemini's own form: y first, in parts of a thousand, regardless of the declared space."""
_PERMILLE = re.compile(
    r"0\s?(?:-|\u2013|to)\s?1,?000\b|per\s?mille?|\u2030|/\s?1,?000\b", re.IGNORECASE
)
_UNIT = re.compile(
    r"\b(?:normali[sz]\w{0,6}|normiert\w{0,2}|normalizad\w{0,2}|normalizzat\w|fractions?|relative|ratios?|нормализ\w{0,8})\b(?:\sof\s(?:the\s)?(?:frame|image|video|width\sand\sheight|size))?|归一化|正規化|정규화"
    r"|[\[(]?\b0(?:\.0)?\s?(?:-|\u2013|to|\.\.)\s?1(?:\.0)?\b(?![.,]?\s?[0-9])[\])]?"
    r"|[\[(]0(?:\.0)?\s?,\s?1(?:\.0)?[\])]",
    re.IGNORECASE,
)
_PIXELS = re.compile(r"(?<=[0-9])\s?(?:px|pixels?|像素)\b|(?<=[0-9])像素", re.IGNORECASE)
_COMMAS = re.compile(r"(?<=[0-9]),(?=[0-9])")
_N = 4
_PERCENT = BoxSpace("percent", 100, 100)
_PARTS = BoxSpace("unit", 1, 1)
_THOUSANDTHS = BoxSpace("permille", PERMILLE, PERMILLE)
_LEFT = ("x0", "xmin", "left", "xleft", "xstart", "xtl", "x")
_TOP = ("y0", "ymin", "top", "ytop", "ystart", "ytl", "y")
_RIGHT = ("x2", "xmax", "right", "xright", "xend", "xbr")
_BOTTOM = ("y2", "ymax", "bottom", "ybottom", "yend", "ybr")
_WIDTH = ("width", "w", "boxw", "boxwidth")
_HEIGHT = ("height", "h", "boxh", "boxheight")
_X_CENTRE = ("cx", "xc", "xcenter", "xcentre", "centerx", "centrex")
_Y_CENTRE = ("cy", "yc", "ycenter", "ycentre", "centery", "centrey")


def parse_trace_box(piece: str, mode: Mode, *, space: BoxSpace) -> Box | Unparsed:
    """Parse a box in a piece of an answer, in units of `space`, and clip it to the frame.

    `strict` accepts four corners in brackets. `lenient` also accepts named sides, sides in an order
    that the text names, a corner or a centre with width and height, percentages, fractions of 1
    that the text calls fractions, and the first of several boxes. Gemini's `box_2d` is rejected,
    and so are fractions of 1 if `space` has other units: read as corners, they would be a different
    box.
    """
    if len(piece) > SHORT:
        return Unparsed.of(UnparsedReason.MALFORMED, piece)
    if exact := _EXACT.fullmatch(piece):
        corners = exact.groups()
        ratios = [_parse_decimal_ratio(corner) for corner in corners]
        are_parts = all(n <= d for n, d in ratios) and any(n % d for n, d in ratios)
        if max(space.width, space.height) > 1 and are_parts:
            return Unparsed.of(UnparsedReason.OUT_OF_RANGE, piece)
        sizes = (space.width, space.height) * 2
        # A quotient of integers is rounded only once, like that of fractions.
        x0, y0, x1, y1 = (
            min(1.0, max(0.0, n / (d * size))) for (n, d), size in zip(ratios, sizes, strict=True)
        )
        if x0 < x1 and y0 < y1:
            return Box(x0, y0, x1, y1)
        return Unparsed.of(UnparsedReason.OUT_OF_RANGE, piece)
    if mode == "strict":
        return Unparsed.of(UnparsedReason.MALFORMED, piece)
    return _parse_loose_box(strip_markup(piece), space)


def _parse_decimal_ratio(number: str) -> tuple[int, int]:
    integer, _, decimals = number.partition(".")
    return int(integer + decimals), 10 ** len(decimals)


def find_box_texts(text: str) -> list[str]:
    """Return the bracketed parts of `text` with four numbers, which may be boxes."""
    groups = (match[0] for match in _GROUP.finditer(text))
    return [group for group in groups if len(_ANY_NUMBER.findall(group)) == _N]


def _parse_loose_box(piece: str, box_space: BoxSpace) -> Box | Unparsed:
    if _ELSEWHERE.search(piece):
        space = None
    elif "%" in piece:
        space = _PERCENT
    elif _PERMILLE.search(piece):
        space = _THOUSANDTHS
    elif _UNIT.search(piece):
        space = _PARTS
    else:
        counts = box_space.name not in {_PARTS.name, _THOUSANDTHS.name}
        space = box_space if counts or not _PIXELS.search(piece) else None
    corners = None if space is None else _find_corners(_remove_unit_words(piece))
    if space is None or corners is None:
        return Unparsed.of(UnparsedReason.MALFORMED, piece)
    if space is _PARTS and max(corners) > 1:
        return Unparsed.of(UnparsedReason.OUT_OF_RANGE, piece)
    if max(space.width, space.height) > 1 and (
        max(corners) <= 1 and any(corner.denominator > 1 for corner in corners)
    ):
        return Unparsed.of(UnparsedReason.OUT_OF_RANGE, piece)
    return space.box(list(corners)) or Unparsed.of(UnparsedReason.OUT_OF_RANGE, piece)


def _remove_unit_words(piece: str) -> str:
    plain = piece
    for pattern in (_PERMILLE, _UNIT, _PIXELS):
        plain = pattern.sub(" ", plain)
    plain = _COMMAS.sub(".", plain) if plain.count(";") == _N - 1 else plain
    return plain.replace("%", " ")


def _find_corners(piece: str) -> list[Fraction] | None:
    """Return left, top, right, bottom by ranges, corners, names or stated order; `None` if unreadable."""
    if ranges := _RANGES.search(piece):
        numbers = [Fraction(ranges[index]) for index in (2, 3, 5, 6)]
        axes = ranges["first"].lower() + ranges["second"].lower()
        x, y = (numbers[:2], numbers[2:]) if axes == "xy" else (numbers[2:], numbers[:2])
        return [x[0], y[0], x[1], y[1]] if axes in {"xy", "yx"} else None
    if opposite := _find_opposite_corners(piece):
        return opposite
    named: dict[str, Fraction] = {}
    for side in _NAMED.finditer(piece):
        named.setdefault(_normalise_side_name(side["name"]), Fraction(side["number"]))
    if len(named) >= _N:
        return _find_corners_by_name(named)
    if order := _ORDER.search(piece):
        return _find_corners_by_order(piece, order)
    if not _BY_SIZE.search(piece):
        return _find_four_numbers(piece)
    # A box given by a point, width and height.
    numbers = [Fraction(number) for number in _ANY_NUMBER.findall(_NAMED.sub(" ", piece))]
    if len(numbers) != _N - 2:
        return None
    names = ("cx", "cy") if _BY_CENTRE.search(piece) else ("x", "y")
    return _find_corners_by_name(named | dict(zip(names, numbers, strict=True)))


def _find_corners_by_order(piece: str, order: re.Match[str]) -> list[Fraction] | None:
    numbers = _find_four_numbers(piece[: order.start()] + " " + piece[order.end() :])
    if numbers is None:
        return None
    names = _SHORT_ORDERS[order["short"].lower()] if order["short"] else order.groups()[:_N]
    return _find_corners_by_name(dict(zip(map(_normalise_side_name, names), numbers, strict=True)))


def _normalise_side_name(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _find_opposite_corners(piece: str) -> list[Fraction] | None:
    corners = {
        (match["y"].lower() in {"top", "upper"}, match["x"].lower() == "left"): (
            Fraction(match[3]),
            Fraction(match[4]),
        )
        for match in _CORNERS.finditer(piece)
    }
    for (is_top, is_left), (x, y) in corners.items():
        if opposite := corners.get((not is_top, not is_left)):
            left, right = (x, opposite[0]) if is_left else (opposite[0], x)
            top, bottom = (y, opposite[1]) if is_top else (opposite[1], y)
            return [left, top, right, bottom]
    return None


def _find_corners_by_name(keyed: Mapping[str, Fraction]) -> list[Fraction] | None:
    width, height = _find_first_number(keyed, _WIDTH, ""), _find_first_number(keyed, _HEIGHT, "")
    x, y = _find_first_number(keyed, _X_CENTRE, ""), _find_first_number(keyed, _Y_CENTRE, "")
    if x is not None and y is not None and width is not None and height is not None:
        return [x - width / 2, y - height / 2, x + width / 2, y + height / 2]
    left, top = _find_first_number(keyed, _LEFT, "x1"), _find_first_number(keyed, _TOP, "y1")
    if left is None or top is None:
        return None
    # If the left side is x0, the right one is x1; if it is x1, the right one is x2.
    right = _find_first_number(keyed, _RIGHT, "x1" if any(key in keyed for key in _LEFT) else "")
    bottom = _find_first_number(keyed, _BOTTOM, "y1" if any(key in keyed for key in _TOP) else "")
    if right is not None and bottom is not None:
        return [left, top, right, bottom]
    if width is not None and height is not None:
        return [left, top, left + width, top + height]
    return None


def _find_first_number(
    keyed: Mapping[str, Fraction], names: Sequence[str], last: str
) -> Fraction | None:
    return next((keyed[name] for name in (*names, last) if name in keyed), None)


def _find_four_numbers(piece: str) -> list[Fraction] | None:
    for group in _GROUP.finditer(piece):
        numbers = _ANY_NUMBER.findall(group[0])
        if len(numbers) == _N:
            return [Fraction(number) for number in numbers]
    if points := _POINTS.search(piece):
        numbers = _ANY_NUMBER.findall(points[1]) + _ANY_NUMBER.findall(points[2])
    else:
        numbers = _ANY_NUMBER.findall(piece)
    return [Fraction(number) for number in numbers] if len(numbers) == _N else None
