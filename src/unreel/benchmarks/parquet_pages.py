"""Uncompressed sizes of the pages of a Parquet file, from the page headers.

The sizes in the footer are not reliable, and a dictionary lets a few bytes expand to gigabytes:
a string of one megabyte that a million rows refer to fits in a file of three kilobytes. The
decoder uses the page headers, so this module reads the page headers. It decompresses only
dictionaries.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from unreel.benchmarks.cells import PARQUET_PAGE_BYTES
from unreel.core.errors import InvalidValueError

_HEADER_BYTES: Final = (4 << 10, 1 << 20)
"""Numbers of bytes to read for a page header; the second one is for headers with very long statistics."""
_DEEPEST: Final = 8
_DATA, _INDEX, _DICTIONARY, _DATA_V2 = range(4)
_BY_DICTIONARY: Final = frozenset({2, 8})
_DELTA_STRINGS: Final = 7
"""Encoding in which values repeat the start of the previous value, so that no header limits their length."""
# Types in Thrift's compact protocol; the type of a Boolean is its value.
_TRUTHS: Final = frozenset({1, 2})
_NUMBERS: Final = frozenset({4, 5, 6})
_BYTE, _BINARY, _STRUCT = 3, 8, 12
_SIZES: Final = {1: 0, 2: 0, _BYTE: 1, 7: 8}
_LISTS: Final = frozenset({9, 10})


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetPageHeader:
    """Header of one page of a Parquet file."""

    kind: int
    n_values: int
    encoding: int
    unpacked_bytes: int
    packed_bytes: int
    at: int
    """Offset of the page's content in the file."""

    @property
    def is_dictionary(self) -> bool:
        """Return whether the page is a dictionary page."""
        return self.kind == _DICTIONARY

    @property
    def refers(self) -> bool:
        """Return whether the values of the page are indices into the dictionary of its column."""
        return self.encoding in _BY_DICTIONARY and not self.is_dictionary


def read_parquet_page_headers(
    file: BinaryIO, *, start: int, n_bytes: int
) -> Iterator[ParquetPageHeader]:
    """Yield the page headers of the column chunk at `start`, in order; index pages are skipped.

    Raises:
        InvalidValueError: A page is damaged, too large, or of a type without a known size limit.
    """
    at, end = start, start + n_bytes
    while at < end:
        page = _read_page_header(file, at)
        if page.kind != _INDEX:
            yield page
        at = page.at + page.packed_bytes


def find_longest_dictionary_value(file: BinaryIO, page: ParquetPageHeader, codec: str) -> int:
    """Return the length in bytes of the longest entry of a dictionary of byte strings."""
    import pyarrow as pa

    file.seek(page.at)
    data = file.read(page.packed_bytes)
    if codec != "UNCOMPRESSED":
        name = {"LZ4": "lz4_raw", "LZ4_RAW": "lz4_raw"}.get(codec, codec.lower())
        try:
            data = pa.decompress(
                data, decompressed_size=page.unpacked_bytes, codec=name, asbytes=True
            )
        except (pa.ArrowException, OSError, ValueError) as error:
            msg = f"a damaged dictionary: {error}"
            raise InvalidValueError(msg) from error
    longest = at = 0
    for _ in range(page.n_values):
        if at + 4 > len(data):
            break
        (length,) = struct.unpack_from("<I", data, at)
        longest = max(longest, length)
        at += 4 + length
    return min(longest, page.unpacked_bytes)


def _read_page_header(file: BinaryIO, at: int) -> ParquetPageHeader:
    for n_bytes in _HEADER_BYTES:
        file.seek(at)
        reader = _CompactThriftReader(file.read(n_bytes))
        try:
            header = reader.struct()
        except IndexError:
            continue
        return _parse_page_header(header, at + reader.at)
    msg = "a page with an unterminated header"
    raise InvalidValueError(msg)


def _parse_page_header(header: dict[int, Any], at: int) -> ParquetPageHeader:
    kind, unpacked, packed = (header.get(field) for field in (1, 2, 3))
    details = header.get({_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}.get(kind or 0, 0), {})
    if kind != _INDEX and not isinstance(details, dict):
        details = {}
    encoding = details.get(4 if kind == _DATA_V2 else 2, 0) if kind != _INDEX else 0
    page = ParquetPageHeader(
        kind=_require_bounded_integer(kind, _DATA_V2),
        n_values=_require_bounded_integer(details.get(1, 0), 2**31),
        encoding=_require_bounded_integer(encoding, 255),
        unpacked_bytes=_require_bounded_integer(unpacked, PARQUET_PAGE_BYTES),
        packed_bytes=_require_bounded_integer(packed, 2 * PARQUET_PAGE_BYTES),
        at=at,
    )
    if page.encoding == _DELTA_STRINGS:
        msg = "strings in delta encoding, whose length is not stored in the page"
        raise InvalidValueError(msg)
    return page


def _require_bounded_integer(value: object, maximum: int) -> int:
    if type(value) is not int or not 0 <= value <= maximum:
        msg = f"a page that is damaged or larger than {PARQUET_PAGE_BYTES} bytes"
        raise InvalidValueError(msg)
    return value


class _CompactThriftReader:
    """Reader of Thrift's compact protocol, limited to the types that page headers use."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Parse the fields of a struct by number; raise `IndexError` if the data ends before it."""
        if depth > _DEEPEST:
            msg = "a page whose header is nested too deeply"
            raise InvalidValueError(msg)
        fields: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            field = field + step if step else self._number()
            fields[field] = self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        match kind:
            case _ if kind in _NUMBERS:
                return self._number()
            case _ if kind in _SIZES:
                self._skip(_SIZES[kind])
            case _ if kind == _BINARY:
                self._skip(self._varint())
            case _ if kind in _LISTS:
                self._list(depth)
            case _ if kind == _STRUCT:
                return self.struct(depth + 1)
            case _:
                msg = "a page with an invalid header"
                raise InvalidValueError(msg)
        return None

    def _list(self, depth: int) -> None:
        head = self._byte()
        count, kind = head >> 4, head & 15
        if count == 15:  # noqa: PLR2004  the count follows
            count = self._varint()
        for _ in range(count):
            # In lists a Boolean has a byte of its own.
            self._value(_BYTE if kind in _TRUTHS else kind, depth + 1)

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def _skip(self, n_bytes: int) -> None:
        self.at += n_bytes
        if self.at > len(self._data):
            raise IndexError

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:  # noqa: PLR2004  the highest bit says that more follow
                return value
        msg = "a page with a number that is too large"
        raise InvalidValueError(msg)

    def _number(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
