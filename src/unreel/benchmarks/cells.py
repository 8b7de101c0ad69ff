"""Cells that strangers wrote, turned into values or refused with a reason.

Every function raises `InvalidValueError`; the reader of the row makes a `Rejected` of it.
"""

import math
import re
from collections.abc import Sized
from fractions import Fraction
from functools import lru_cache
from typing import Final, NoReturn
from unicodedata import category
from urllib.parse import urlsplit

from unreel.core.errors import InvalidValueError

LARGEST: Final = 10**12
"""No count, size, rate or time of a clip comes near: a larger number is damage."""
LONGEST_NUMBER: Final = 40
URL_SCHEMES: Final = frozenset({"http", "https", "s3", "gs", "hf"})
CELL_SHOWN: Final = 60
ALLOW_OUTSIDE: Final = "--allow-outside"
"""What a person types who trusts a table with any file of this machine."""
_BREAKING: Final = frozenset({"Cc", "Zl", "Zp"})
_SIMPLE_PATH: Final = re.compile(r"(?:[\w-][\w.-]*/)*[\w-][\w.-]*", re.ASCII)
"""A normalised relative path: letters, digits, `_`, `-` and dots inside."""
_TURNING: Final = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


def refuse(what: str, value: object, remedy: str) -> NoReturn:
    """Raise `InvalidValueError` that names the cell, shows it cut short and says what to write."""
    msg = f"{what} cannot be {show_cell(value)}. {remedy}"
    raise InvalidValueError(msg)


def show_cell(value: object) -> str:
    """Format `value` as short text that is safe to print."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > LARGEST:
        return "a number beyond all measure"
    if isinstance(value, str | bytes):
        value = value[: CELL_SHOWN + 1]
    elif isinstance(value, Sized) and len(value) > CELL_SHOWN:
        return f"a {type(value).__name__} of {len(value)} values"
    shown = ascii(value)
    return shown if len(shown) <= CELL_SHOWN else f"{shown[:CELL_SHOWN]}..."


def parse_text_cell(value: object, what: str) -> str:
    """Parse a text cell and strip its blanks; `None` gives "", and a number gives its digits."""
    if value is None:
        return ""
    if type(value) is str and value.isascii():
        return value.strip()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(parse_exact_number(value, what)) if isinstance(value, int) else str(value)
    if not isinstance(value, str):
        refuse(what, value, "Write plain text")
    if not value.isascii() and not _is_encodable(value):
        refuse(what, value, "Save the table as UTF-8, and give the file a name in it")
    return value.strip()


def parse_exact_number(value: object, what: str) -> Fraction:
    """Parse a finite number exactly as written: `29.97` is 2997/100, `30000/1001` stays 30000/1001."""
    found = _parse_number(value)
    if found is None or abs(found.numerator) > LARGEST * found.denominator:
        refuse(what, value, "Write a plain number")
    return found


def parse_count_cell(value: object, what: str) -> int:
    """Parse a whole number of zero or more."""
    if type(value) is int and 0 <= value <= LARGEST:
        return value
    found = parse_exact_number(value, what)
    if found.denominator != 1 or found < 0:
        refuse(what, value, "Write a whole number of zero or more")
    return int(found)


def parse_positive_number(value: object, what: str) -> Fraction:
    """Parse a number above zero."""
    found = parse_exact_number(value, what)
    if found <= 0:
        refuse(what, value, "Write a number above zero")
    return found


def is_blank(value: object) -> bool:
    """Return whether a cell is empty: `None`, or text of blanks only."""
    return value is None or (isinstance(value, str) and not value.strip())


def quote_found_path(path: str) -> str:
    """Return the path of a file found below a benchmark's folder, unchanged."""
    parse_text_cell(path, "path")
    _require_plain(path, "path")
    return path


def show_name(path: str) -> str:
    """Format a rejected path as text that is safe to print, store and send."""
    return show_cell(path).strip("'\"")


def parse_location(value: object, what: str, *, outside: bool | None = None) -> str:
    """Return a URL, or a normalised path below the benchmark's folder.

    `outside`: whether it may leave that folder; `None` if that cannot be allowed.
    """
    if type(value) is str and _SIMPLE_PATH.fullmatch(value):
        return value
    found = parse_text_cell(value, what)
    _require_plain(found, what)
    if "://" in found:
        if urlsplit(found).scheme not in URL_SCHEMES or not urlsplit(found).netloc:
            refuse(what, value, f"Use one of {', '.join(sorted(URL_SCHEMES))}")
        return found
    allow = "" if outside is None else f", or allow it with {ALLOW_OUTSIDE}"
    is_absolute = found.startswith("/")
    if (is_absolute and not outside) or re.match(r"[A-Za-z]:", found):
        refuse(what, value, f"Write a path relative to the benchmark's folder{allow}")
    parts: list[str] = []
    for part in found.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part == ".." and not outside:
            refuse(what, value, f"Keep the path inside the benchmark's folder{allow}")
        elif part not in {"", "."}:
            parts.append(part)
    if not parts or parts[-1] == "..":
        refuse(what, value, "Name a file")
    return "/".join(["", *parts] if is_absolute else parts)


def is_url(location: str) -> bool:
    """Return whether a location is a URL instead of a path."""
    return "://" in location


def _require_plain(location: str, what: str) -> None:
    if not _is_plain(location):
        remedy = (
            "Write a path with / between its parts, or rename the file, without control characters"
        )
        refuse(what, location, remedy)


def _is_plain(location: str) -> bool:
    """Return whether it contains no line break, cursor movement or change of text direction.

    `str.isprintable` alone would refuse the blanks that cameras put into names, joined emoji, private
    characters, and whatever is younger than this Python.
    """
    if "\\" in location:
        return False
    odd = (
        []
        if location.isprintable()
        else [letter for letter in location if not letter.isprintable()]
    )
    return not any(letter in _TURNING or category(letter) in _BREAKING for letter in odd)


def _is_encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parse_number(value: object) -> Fraction | None:
    if isinstance(value, str) and len(value) <= LONGEST_NUMBER:
        return _parse_ratio(value)
    if isinstance(value, float):
        return _parse_exact_fraction(repr(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    return None


def _parse_ratio(digits: str) -> Fraction | None:
    above, slash, below = digits.strip().partition("/")
    top = _parse_exact_fraction(above)
    if not slash or top is None:
        return top
    bottom = _parse_exact_fraction(below)
    return top / bottom if bottom else None


@lru_cache(maxsize=1024)  # frame rates and sizes repeat from row to row
def _parse_exact_fraction(digits: str) -> Fraction | None:
    try:
        value = float(digits)  # bounds the exponent before an exact value is built from it
    except ValueError:
        return None
    return Fraction(repr(value)) if math.isfinite(value) else None
