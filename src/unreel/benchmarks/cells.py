"""Parsers of untrusted table cells, and size limits for tables and directories.

A parser raises `InvalidValueError` for an invalid cell; the reader of the row turns the error into
a `Rejected`.
"""

import math
import re
from collections.abc import Sized
from fractions import Fraction
from functools import lru_cache
from typing import NoReturn
from unicodedata import category
from urllib.parse import urlsplit

from unreel.core.errors import InvalidValueError

ROW_BYTES = 4 << 20
"""Maximum size of one row of a CSV or JSONL file, with all its lines."""
COLUMNS = 10_000
DOCUMENT_BYTES = 64 << 20
"""Maximum size of a table that is one JSON document; DeepTraceReward's has 7,652 rows of about 1 kB."""
NESTED_VALUES = 100_000
"""Maximum number of values in one nested cell; a trace has at most one box per frame."""
FOLDER_DEPTH = 32
"""Maximum depth of nested folders."""

LARGEST = 10**12
"""Maximum of a number in a cell: counts, sizes, rates and times of clips are far below it."""
LONGEST_NUMBER = 40
URL_SCHEMES = frozenset({"http", "https", "s3", "gs", "hf"})
CELL_SHOWN = 60
ALLOW_OUTSIDE = "--allow-outside"
"""Option with which a user lets a table name any file of this machine."""
_BREAKING = frozenset({"Cc", "Zl", "Zp"})
_SIMPLE_PATH = re.compile(r"(?:[\w-][\w.-]*/)*[\w-][\w.-]*", re.ASCII)
"""Pattern of a normalised relative path: letters, digits, `_`, `-` and dots inside."""
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def raise_invalid_cell(what: str, value: object, remedy: str) -> NoReturn:
    """Raise an `InvalidValueError` about a cell, with the field, the shortened value and the remedy."""
    raise InvalidValueError(f"{what} cannot be {format_untrusted_cell(value)}. {remedy}")


def format_untrusted_cell(value: object) -> str:
    """Format `value` as short text that is safe to print."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > LARGEST:
        return "a number that is too large"
    if isinstance(value, str | bytes):
        value = value[: CELL_SHOWN + 1]
    elif isinstance(value, Sized) and len(value) > CELL_SHOWN:
        return f"a {type(value).__name__} of {len(value)} values"
    text = ascii(value)
    return text if len(text) <= CELL_SHOWN else f"{text[:CELL_SHOWN]}..."


def parse_text_cell(value: object, what: str) -> str:
    """Parse a text cell and strip its blanks; `None` gives "", and a number gives its digits."""
    if value is None:
        return ""
    if type(value) is str and value.isascii():
        return value.strip()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(parse_exact_number(value, what)) if isinstance(value, int) else str(value)
    if not isinstance(value, str):
        raise_invalid_cell(what, value, "Write plain text")
    if not value.isascii() and not is_utf8_encodable(value):
        raise_invalid_cell(what, value, "Save the table as UTF-8, and give the file a name in it")
    return value.strip()


def parse_exact_number(value: object, what: str) -> Fraction:
    """Parse a finite number exactly as written: `29.97` is 2997/100, `30000/1001` stays 30000/1001."""
    number = _parse_number(value)
    if number is None or abs(number.numerator) > LARGEST * number.denominator:
        raise_invalid_cell(what, value, "Write a plain number")
    return number


def parse_count_cell(value: object, what: str) -> int:
    """Parse an integer of at least 0."""
    if type(value) is int and 0 <= value <= LARGEST:
        return value
    number = parse_exact_number(value, what)
    if number.denominator != 1 or number < 0:
        raise_invalid_cell(what, value, "Write a whole number of zero or more")
    return int(number)


def parse_positive_number(value: object, what: str) -> Fraction:
    """Parse a number above zero."""
    number = parse_exact_number(value, what)
    if number <= 0:
        raise_invalid_cell(what, value, "Write a number above zero")
    return number


def is_blank_cell(value: object) -> bool:
    """Return whether a cell is empty: `None`, or text of blanks only."""
    return value is None or (isinstance(value, str) and not value.strip())


def require_printable_path(path: str) -> str:
    """Return the path of a file below a benchmark's folder unchanged, if it is safe to print.

    Raise `InvalidValueError` if the path is not UTF-8, or contains control characters or a
    backslash.
    """
    parse_text_cell(path, "path")
    _require_plain_location(path, "path")
    return path


def format_untrusted_name(path: str) -> str:
    """Format a rejected path as text that is safe to print, store and send."""
    return format_untrusted_cell(path).strip("'\"")


def parse_clip_location(value: object, what: str, *, outside: bool | None = None) -> str:
    """Return a cell's URL or path; `outside` lets it leave the folder (`None`: no, and without that advice)."""
    if type(value) is str and _SIMPLE_PATH.fullmatch(value):
        return value
    text = parse_text_cell(value, what)
    _require_plain_location(text, what)
    if "://" in text:
        if urlsplit(text).scheme not in URL_SCHEMES or not urlsplit(text).netloc:
            raise_invalid_cell(what, value, f"Use one of {', '.join(sorted(URL_SCHEMES))}")
        return text
    allow = "" if outside is None else f", or allow it with {ALLOW_OUTSIDE}"
    is_absolute = text.startswith("/")
    if (is_absolute and not outside) or re.match(r"[A-Za-z]:", text):
        raise_invalid_cell(what, value, f"Write a path relative to the benchmark's folder{allow}")
    parts: list[str] = []
    for part in text.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part == ".." and not outside:
            raise_invalid_cell(what, value, f"Keep the path inside the benchmark's folder{allow}")
        elif part not in {"", "."}:
            parts.append(part)
    if not parts or parts[-1] == "..":
        raise_invalid_cell(what, value, "Name a file")
    return "/".join(["", *parts] if is_absolute else parts)


def is_url(location: str) -> bool:
    """Return whether a location is a URL instead of a path."""
    return "://" in location


def _require_plain_location(location: str, what: str) -> None:
    if not _has_plain_characters(location):
        remedy = (
            "Write a path with / between its parts, or rename the file, without control characters"
        )
        raise_invalid_cell(what, location, remedy)


def _has_plain_characters(location: str) -> bool:
    """Return whether a location contains no backslash, line break or change of text direction.

    `str.isprintable` alone would reject the blanks that cameras put into names, joined emoji,
    private characters, and characters that are newer than this Python.
    """
    if "\\" in location:
        return False
    odd = (
        []
        if location.isprintable()
        else [letter for letter in location if not letter.isprintable()]
    )
    return not any(letter in _TURNING or category(letter) in _BREAKING for letter in odd)


def is_utf8_encodable(value: str) -> bool:
    """Return whether `value` can be written as UTF-8; a lone surrogate cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parse_number(value: object) -> Fraction | None:
    if isinstance(value, str) and len(value) <= LONGEST_NUMBER:
        above, slash, below = value.strip().partition("/")
        top = _parse_exact_fraction(above)
        if not slash or top is None:
            return top
        bottom = _parse_exact_fraction(below)
        return top / bottom if bottom else None
    if isinstance(value, float):
        return _parse_exact_fraction(repr(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    return None


@lru_cache(maxsize=1024)  # frame rates and sizes repeat from row to row
def _parse_exact_fraction(digits: str) -> Fraction | None:
    try:
        value = float(digits)  # limits the exponent before an exact value is built from it
    except ValueError:
        return None
    return Fraction(repr(value)) if math.isfinite(value) else None
