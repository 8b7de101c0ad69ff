"""The documents of a JSON file, one after the other: lines of NDJSON, or the items of one array."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final, TypeVar

from unreel.benchmarks.entry import Rejected
from unreel.core.errors import InvalidValueError
from unreel.core.output_files import open_regular
from unreel.core.small_documents import parse_json

Read = TypeVar("Read")
_MOST_OF_ARRAY: Final = 1 << 30
_MOST_OF_ONE: Final = 128 << 20
_BLANK: Final = b" \t\r\n"
_MARK: Final = b"\xef\xbb\xbf"
_HEAD: Final = 4096
# A string as a whole, so that brackets in it do not count, or one bracket, or a comma. A string without
# an end runs to the file's: else every quote in it would be tried as another beginning.
_PARTS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)


def iter_json_items(path: Path) -> Iterator[tuple[str, Any] | Rejected]:
    """Yield each document with its position; invalid ones are reported, and the rest continues."""
    with open_regular(path) as file:
        is_array = read_first_character(file.peek(_HEAD)) == b"["
        for where, data in _iter_array_items(file) if is_array else _iter_json_lines(file):
            name = f"{path.name}: {where}"
            if len(data) > _MOST_OF_ONE:
                yield Rejected(name, f"larger than {_MOST_OF_ONE} bytes. Split the video")
                continue
            try:
                yield name, parse_json(data)
            except InvalidValueError as error:
                yield Rejected(name, f"{error}. Export it again")


def read_items(path: Path, read: Callable[[str, Any], Iterator[Read]]) -> Iterator[Read | Rejected]:
    """Yield the results of `read` for each document with its location; rejected documents are reported and skipped."""
    for item in iter_json_items(path):
        if isinstance(item, Rejected):
            yield item
            continue
        where, document = item
        try:
            yield from read(where, document)
        except InvalidValueError as error:
            yield Rejected(where, str(error))


def read_first_character(data: bytes) -> bytes:
    """Return the first character of a text, after blanks and a byte order mark."""
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
        # Told by the caller as one document that is too large.
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
