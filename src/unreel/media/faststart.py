"""Puts the index of an mp4 file before its pictures, so that a browser can begin and seek at once."""

import struct
from collections.abc import Iterator
from typing import Final

from unreel.core.errors import MediaError
from unreel.core.failure import Failure, FailureReason

_HOLDERS: Final = frozenset({b"moov", b"trak", b"mdia", b"minf", b"stbl"})
_OFFSETS: Final = {b"stco": (">I", 4), b"co64": (">Q", 8)}
_HEAD: Final = 8
_LONG_HEAD: Final = 16
_TABLE: Final = 16
"""Bytes of a table of offsets before its first one: head, version and flags, count."""


def index_first(mp4: bytes) -> bytes:
    """Return the file with its index in front; unchanged if it is there already.

    Raises:
        MediaError: It is not a complete mp4 file.
    """
    boxes = list(_iter_mp4_boxes(mp4, 0, len(mp4)))
    kinds = [kind for kind, _, _ in boxes]
    if kinds.count(b"moov") != 1 or b"mdat" not in kinds:
        raise MediaError(Failure(FailureReason.UNDECODABLE, "the copy has no index"))
    if kinds.index(b"moov") < kinds.index(b"mdat"):
        return mp4
    _, start, end = boxes[kinds.index(b"moov")]
    index = bytearray(mp4[start:end])
    place = next(start for kind, start, _ in boxes if kind == b"mdat")
    _shift_sample_offsets(index, 0, len(index), by=len(index))
    return b"".join((mp4[:place], index, mp4[place:start], mp4[end:]))


def _iter_mp4_boxes(
    data: bytes | bytearray, start: int, end: int
) -> Iterator[tuple[bytes, int, int]]:
    """Yield kind, start and end of each mp4 box between the offsets `start` and `end`."""
    while start + _HEAD <= end:
        size, kind = struct.unpack_from(">I4s", data, start)
        if size == 1 and start + _LONG_HEAD <= end:
            (size,) = struct.unpack_from(">Q", data, start + _HEAD)
        elif size == 0:
            size = end - start
        if size < _HEAD or start + size > end:
            raise MediaError(
                Failure(FailureReason.UNDECODABLE, "a box of the copy leads out of it")
            )
        yield kind, start, start + size
        start += size


def _shift_sample_offsets(index: bytearray, start: int, end: int, *, by: int) -> None:
    """Move every offset of samples, in place."""
    for kind, first, last in list(_iter_mp4_boxes(index, start, end)):
        if kind in _HOLDERS:
            _shift_sample_offsets(index, first + _HEAD, last, by=by)
        elif kind in _OFFSETS:
            form, width = _OFFSETS[kind]
            for place in range(first + _TABLE, last - width + 1, width):
                (was,) = struct.unpack_from(form, index, place)
                struct.pack_into(form, index, place, was + by)
