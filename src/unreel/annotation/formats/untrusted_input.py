"""Bounded readers of untrusted JSON and XML files, and checked parsers of numbers, texts and boxes."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import IO, Any, Final, Protocol, TypeVar
from xml.parsers import expat

from unreel.annotation.formats.annotated_video import MOST_FRAMES, MOST_LETTERS
from unreel.benchmarks.entry import Rejected
from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.input_files import parse_json
from unreel.core.output_files import open_regular_user_file

_CHUNK: Final = 1 << 16
_DEEPEST: Final = 32


class XmlElementCallbacks(Protocol):
    """Callbacks of the XML parser for the start and the end of each element."""

    def begin(self, path: tuple[str, ...], attributes: Mapping[str, str]) -> None:
        """Handle the start of an element; `path` lists the element names from the root to this element."""
        ...

    def end(self, path: tuple[str, ...], text: str) -> None:
        """Handle the end of an element; `text` is its direct text."""
        ...


def parse_bounded_xml(
    file: IO[bytes], listener: XmlElementCallbacks, *, most: int, letters: int
) -> None:
    """Parse the untrusted XML in `file`, and call `listener` for each element up to the first error.

    Args:
        file: XML file.
        listener: Callbacks for elements.
        most: Maximum number of bytes of the file.
        letters: Maximum number of characters of an element's text.

    Raises:
        InvalidValueError: The file is not XML, declares a document type or entities, is nested too
            deeply, or exceeds a limit.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    adapter = _ExpatCallbackAdapter(listener, letters=letters)
    parser.StartElementHandler = adapter.begin
    parser.EndElementHandler = adapter.end
    parser.CharacterDataHandler = adapter.letters
    for name in ("StartDoctypeDeclHandler", "EntityDeclHandler", "ExternalEntityRefHandler"):
        setattr(
            parser,
            name,
            _build_rejecting_handler("it declares a document type. Take the declaration out"),
        )
    try:
        for chunk in _iter_bounded_chunks(file, most):
            parser.Parse(chunk, False)  # noqa: FBT003  expat's own signature
        parser.Parse(b"", True)  # noqa: FBT003
    except expat.ExpatError as error:
        msg = (
            f"no XML from line {error.lineno} on: {expat.ErrorString(error.code)}. Export it again"
        )
        raise InvalidValueError(msg) from error
    finally:
        adapter.close(parser)


class _ExpatCallbackAdapter:
    def __init__(self, listener: XmlElementCallbacks, *, letters: int) -> None:
        self._listener = listener
        self._most = letters
        self._path: tuple[str, ...] = ()
        self._texts: list[list[str]] = []
        self._n_letters = 0

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        self._path = (*self._path, name)
        if len(self._path) > _DEEPEST:
            msg = f"nested deeper than {_DEEPEST} elements. Export it again"
            raise InvalidValueError(msg)
        self._texts.append([])
        self._n_letters = 0
        self._listener.begin(self._path, attributes)

    def letters(self, text: str) -> None:
        self._n_letters += len(text)
        if self._n_letters > self._most:
            msg = f"an element of more than {self._most} letters. Export it again"
            raise InvalidValueError(msg)
        self._texts[-1].append(text)

    def end(self, _name: str) -> None:
        self._listener.end(self._path, "".join(self._texts.pop()).strip())
        self._path = self._path[:-1]
        self._n_letters = 0

    def close(self, parser: expat.XMLParserType) -> None:
        """Remove the parser's handlers to break the reference cycle between parser and adapter."""
        parser.StartElementHandler = parser.EndElementHandler = None
        parser.CharacterDataHandler = None


def _build_rejecting_handler(problem: str) -> Callable[..., None]:
    def refuse(*_: object) -> None:
        raise InvalidValueError(problem)

    return refuse


def _iter_bounded_chunks(file: IO[bytes], most: int) -> Iterator[bytes]:
    read = 0
    while chunk := file.read(_CHUNK):
        read += len(chunk)
        if read > most:
            msg = f"larger than {most} bytes. Split it"
            raise InvalidValueError(msg)
        yield chunk


MOST_PIXELS: Final = 65_536
"""Maximum width and height of a frame in pixels."""
_LEAST: Final = 1e-9
"""Minimum side of a box, as a fraction of the frame."""


def clip_box_to_frame(x0: float, y0: float, x1: float, y1: float) -> Box:
    """Return the box with these corners, in fractions of the frame, clipped to the frame."""
    inside = [min(1.0, max(0.0, edge)) for edge in (x0, y0, x1, y1)]
    if not (inside[2] - inside[0] > _LEAST and inside[3] - inside[1] > _LEAST):
        msg = f"a box from {x0:g}, {y0:g} to {x1:g}, {y1:g} has no area in the frame. Draw it again"
        raise InvalidValueError(msg)
    return Box(*inside)


def parse_finite_number(value: object, what: str) -> float:
    """Parse a finite number from a JSON number or a string; `what` names it in the error message."""
    try:
        number = float(value) if isinstance(value, int | float | str) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number):
        msg = f"{what} is {format_untrusted_value(value)}. Write a number"
        raise InvalidValueError(msg)
    return number


def parse_count(value: object, what: str, *, most: int = MOST_FRAMES) -> int:
    """Parse an integer from 0 to `most` from a JSON number or a string."""
    number = parse_finite_number(value, what)
    if not (number == int(number) and 0 <= number <= most):
        msg = f"{what} is {format_untrusted_value(value)}. Write a whole number from 0 to {most}"
        raise InvalidValueError(msg)
    return int(number)


def parse_frame_rate(value: object) -> Fraction | None:
    """Parse frames per second (`30`, `30000/1001`; 29.97 is the exact broadcast rate); `None` if invalid."""
    try:
        text = str(value) if isinstance(value, int | float | str) else ""
        rate = Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None
    if not 0 < rate <= 1000:  # noqa: PLR2004  cameras for science are faster, annotators are not
        return None
    broadcast = Fraction(round(rate) * 1000, 1001)
    is_close = abs(rate - broadcast) < Fraction(1, 200)
    return broadcast if is_close and rate.denominator != 1 else rate.limit_denominator(1001)


def parse_bounded_text(value: object) -> str:
    """Return the string `value`, cut to the maximum length; return "" if it is not a string."""
    return value[:MOST_LETTERS] if isinstance(value, str) else ""


def require_json_object(value: object, what: str) -> Mapping[str, Any]:
    """Return `value` if it is a JSON object; otherwise raise `InvalidValueError`."""
    if not isinstance(value, dict):
        msg = f"{what} is {format_untrusted_value(value)}. Write an object"
        raise InvalidValueError(msg)
    return value


def format_untrusted_value(value: object) -> str:
    """Format an untrusted value for a message: at most 60 characters, quoted, in ASCII."""
    return f"{str(value)[:60]!a}"


Read = TypeVar("Read")
_MOST_OF_ARRAY: Final = 1 << 30
_MOST_OF_ONE: Final = 128 << 20
_BLANK: Final = b" \t\r\n"
_MARK: Final = b"\xef\xbb\xbf"
_HEAD: Final = 4096
# A complete string, so that brackets in it do not count, or one bracket, or a comma. A string
# without an end extends to the end of the file; else each quote in it would be tried as a start.
_PARTS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)


def iter_json_documents(path: Path) -> Iterator[tuple[str, Any] | Rejected]:
    """Yield position and content of each item of a JSON array or JSON Lines file; bad items as rejected."""
    with open_regular_user_file(path) as file:
        is_array = get_first_nonblank_byte(file.peek(_HEAD)) == b"["
        for where, data in _iter_array_items(file) if is_array else _iter_json_lines(file):
            name = f"{path.name}: {where}"
            if len(data) > _MOST_OF_ONE:
                yield Rejected(name, f"larger than {_MOST_OF_ONE} bytes. Split the video")
                continue
            try:
                yield name, parse_json(data)
            except InvalidValueError as error:
                yield Rejected(name, f"{error}. Export it again")


def iter_parsed_json_items(
    path: Path, read: Callable[[str, Any], Iterator[Read]]
) -> Iterator[Read | Rejected]:
    """Yield the results of the parser `read` for each item of a JSON array or JSON Lines file.

    Args:
        path: JSON file.
        read: Function that gets an item's position and content. An item for which it raises
            `InvalidValueError` is yielded as rejected.
    """
    for item in iter_json_documents(path):
        if isinstance(item, Rejected):
            yield item
            continue
        where, document = item
        try:
            yield from read(where, document)
        except InvalidValueError as error:
            yield Rejected(where, str(error))


def get_first_nonblank_byte(data: bytes) -> bytes:
    """Return the first byte of `data` after a byte order mark and blanks; empty if there is none."""
    return data.removeprefix(_MARK).lstrip(_BLANK)[:1]


def _iter_json_lines(file: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    number = 0
    while line := file.readline(_MOST_OF_ONE + 2):
        number += 1
        if line.strip(_BLANK + _MARK):
            yield f"line {number}", line.rstrip(_BLANK)
        while len(line) > _MOST_OF_ONE and not line.endswith(b"\n"):
            line = file.readline(_MOST_OF_ONE)


def _iter_array_items(file: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    data = file.read(_MOST_OF_ARRAY + 1)
    if len(data) > _MOST_OF_ARRAY:
        # The caller reports it as one document that is too large.
        yield "array", data
        return
    start, depth, number = data.index(b"[") + 1, 0, 1
    for part in _PARTS.finditer(data, start):
        letter = part[0][:1]
        if letter in (b"[", b"{"):
            depth += 1
        elif letter in (b"]", b"}") and depth:
            depth -= 1
        elif not depth and letter in (b",", b"]"):
            if data[start : part.start()].strip(_BLANK):
                yield f"item {number}", data[start : part.start()]
            number += 1
            start = part.end()
            if letter == b"]":
                return
    if data[start:].strip(_BLANK):
        yield f"item {number}", data[start:]
