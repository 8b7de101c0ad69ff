"""Streaming reader of a large JSON list or object: only one element is in memory at a time."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from unreel.benchmarks.cells import ROW_BYTES
from unreel.core.chunks import READ_BYTES
from unreel.core.errors import UnreadableSourceError
from unreel.core.settings import read_environment_settings

_CLOSING: Final = {"[": "]", "{": "}"}
_BLANKS: Final = " \t\r\n"


def stream_json_items(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the members of the JSON object in the file `path`, or the elements of its JSON list.

    The key of a list element is "".

    Raises:
        UnreadableSourceError: The file is not a JSON list or object, has an element that is too
            large, or has too many elements.
    """
    max_rows = read_environment_settings().table_rows
    try:
        with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
            for number, item in enumerate(
                _iter_json_elements(_JsonTextStream(path, file)), start=1
            ):
                if number > max_rows:
                    remedy = "Split it, or raise UNREEL_TABLE_ROWS"
                    raise UnreadableSourceError(str(path), f"more than {max_rows} rows", remedy)
                yield item
    except OSError as error:
        remedy = "Check the path and that you may read it"
        raise UnreadableSourceError(str(path), error.strerror or "unreadable", remedy) from error


def _iter_json_elements(text: "_JsonTextStream") -> Iterator[tuple[str, Any]]:
    opening = text.take("[{")
    closing = _CLOSING[opening]
    if text.peek() == closing:
        return
    while True:
        key = ""
        if opening == "{":
            key = str(text.decode())
            text.take(":")
        yield key, text.decode()
        if text.take("," + closing) == closing:
            return


class _JsonTextStream:
    """Text of a JSON file that is read in chunks, with a size limit for each element."""

    def __init__(self, path: Path, file: Any) -> None:
        self._path, self._file = path, file
        self._text, self._at, self._is_whole = "", 0, False
        self._decoder = json.JSONDecoder()

    def peek(self) -> str:
        """Return the next character of the file that is no blank, without consuming it; "" at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _BLANKS:
                    return self._text[self._at]
                self._at += 1
            if self._is_whole:
                return ""
            self._read_more()

    def take(self, expected: str) -> str:
        """Consume and return the next character; raise `UnreadableSourceError` if it is not `expected`."""
        char = self.peek()
        if not char or char not in expected:
            msg = f"not JSON: one of {expected} is missing"
            raise self._build_error(msg)
        self._at += 1
        return char

    def decode(self) -> Any:
        """Consume the next JSON value of the file and return it.

        Raises:
            UnreadableSourceError: The value is invalid, too large or nested too deeply.
        """
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except RecursionError:
                msg = "not JSON: nested too deeply"
                raise self._build_error(msg) from None
            except ValueError as error:
                if self._is_whole:
                    msg = f"not JSON: {str(error)[:200]}"
                    raise self._build_error(msg) from error
            else:
                if end < len(self._text) or self._is_whole:
                    self._at = end
                    return value
            if len(self._text) - self._at > ROW_BYTES:
                msg = f"an element of more than {ROW_BYTES} bytes"
                raise self._build_error(msg)
            self._read_more()

    def _read_more(self) -> None:
        chunk = self._file.read(READ_BYTES)
        self._is_whole = not chunk
        self._text, self._at = self._text[self._at :] + chunk, 0

    def _build_error(self, problem: str) -> UnreadableSourceError:
        remedy = "Write a JSON list or object whose elements are small"
        return UnreadableSourceError(str(self._path), problem, remedy)
