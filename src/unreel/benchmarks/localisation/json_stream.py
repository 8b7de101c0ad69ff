"""Streaming reader of a large JSON list or object: only one element is in memory at a time."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from unreel.benchmarks.cells import ROW_BYTES
from unreel.core.chunks import READ_BYTES
from unreel.core.errors import UnreadableSourceError
from unreel.core.settings import read_environment_settings

_CLOSING = {"[": "]", "{": "}"}
_BLANKS = " \t\r\n"
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_DEPTH_STEPS = np.zeros(256, np.int8)
_DEPTH_STEPS[list(b"[{")], _DEPTH_STEPS[list(b"]}")] = 1, -1
_LONG_NUMBERS = json.JSONDecoder(parse_int=float)


class OversizedElement:
    """Element of a JSON file that is too large to be read, in the place of its value."""

    def __repr__(self) -> str:
        return f"an element of more than {ROW_BYTES} bytes"


def stream_json_items(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the members of the JSON object in the file `path`, or the elements of its JSON list.

    The key of a list element is "". A list or object that is too large is an `OversizedElement`.
    Raise `UnreadableSourceError` if the file is not a JSON list or object, has a string that is too
    large, or has too many elements.
    """
    max_rows = read_environment_settings().table_rows
    try:
        with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
            for number, item in enumerate(
                _iter_json_elements(_JsonTextStream(path, file)), start=1
            ):
                if number > max_rows:
                    raise UnreadableSourceError(
                        str(path),
                        f"more than {max_rows} rows",
                        "Split it, or raise UNREEL_TABLE_ROWS",
                    )
                yield item
    except OSError as error:
        raise UnreadableSourceError(
            str(path), error.strerror or "unreadable", "Check the path and that you may read it"
        ) from error


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
        """Return the next character of the file that is not blank, without consuming it; "" at the end."""
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
            raise self._build_error(f"not JSON: one of {expected} is missing")
        self._at += 1
        return char

    def decode(self) -> Any:
        """Consume the next JSON value of the file and return it.

        Raise `UnreadableSourceError` if the value is invalid, too large or nested too deeply.
        """
        self.peek()
        while True:
            try:
                try:
                    value, end = self._decoder.raw_decode(self._text, self._at)
                except json.JSONDecodeError:
                    raise
                except ValueError:  # an integer with more digits than Python converts
                    value, end = _LONG_NUMBERS.raw_decode(self._text, self._at)
            except RecursionError:
                raise self._build_error("not JSON: nested too deeply") from None
            except ValueError as error:
                if self._is_whole:
                    raise self._build_error(f"not JSON: {str(error)[:200]}") from error
            else:
                if end < len(self._text) or self._is_whole:
                    self._at = end
                    return value
            if len(self._text) - self._at > ROW_BYTES:
                return self._skip_oversized()
            self._read_more()

    def _skip_oversized(self) -> OversizedElement:
        """Skip the list or object that begins here, by counting brackets outside strings.

        Raise `UnreadableSourceError` if the element does not end, or a string in it is too large.
        """
        oversized, depth = OversizedElement(), 0
        while depth or self._text[self._at] in _CLOSING:
            text = _STRING.sub(lambda string: " " * len(string[0]), self._text[self._at :])
            text = text.partition('"')[0]
            codes = np.frombuffer(text.encode("latin-1", "replace"), np.uint8)
            depths = depth + _DEPTH_STEPS[codes].cumsum(dtype=np.int32)
            if len(ends := np.flatnonzero(depths == 0)):
                self._at += int(ends[0]) + 1
                return oversized
            depth = int(depths[-1]) if len(text) else depth
            self._at += len(text)
            if self._is_whole or len(self._text) - self._at > ROW_BYTES:
                break
            self._read_more()
        raise self._build_error(repr(oversized))

    def _read_more(self) -> None:
        chunk = self._file.read(READ_BYTES)
        self._is_whole = not chunk
        self._text, self._at = self._text[self._at :] + chunk, 0

    def _build_error(self, problem: str) -> UnreadableSourceError:
        remedy = "Write a JSON list or object whose elements are small"
        return UnreadableSourceError(str(self._path), problem, remedy)
