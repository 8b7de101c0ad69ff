"""Fingerprints of pieces that lie on disk: sketches are read once, hashes as they are compared."""

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from unreel.curation.pieces import SegmentTable
from unreel.curation.working_table import spell_digest
from unreel.media.fingerprint import HASH_WORDS, SKETCH_SIDE, WAYS
from unreel.media.prints import Places, Words


class StoredPrints:
    """The fingerprints of pieces, in the order of their clips' ids."""

    def __init__(self, pieces: SegmentTable) -> None:
        clips = pieces.rows.digests("clip")
        order = np.argsort(clips, kind="stable")
        self._lying = pieces.rows
        self._rows = pieces.rows.reordered(order)
        self._standing = np.argsort(order)
        self.names = ClipDigests(clips[order])
        self.sketches = np.empty((len(clips), SKETCH_SIDE**2), np.uint8)
        for places, sketches in self._lying_in("sketch"):
            packed = np.frombuffer(b"".join(sketches.to_pylist()), np.uint8)
            self.sketches[places] = packed.reshape(-1, SKETCH_SIDE**2)

    def words(self, places: Places) -> Words:
        """The hashes of the clips at `places`."""
        return _unpack(self._rows.take(places, ["hashes"]).column(0))

    def blocks(self) -> Iterator[tuple[Places, Words]]:
        """The hashes of all clips, as pieces lie."""
        for places, hashes in self._lying_in("hashes"):
            yield places, _unpack(hashes)

    def _lying_in(self, column: str) -> Iterator[tuple[Places, Any]]:
        start = 0
        for batch in self._lying.batches([column]):
            stop = start + batch.num_rows
            yield self._standing[start:stop], batch.column(0)
            start = stop


def _unpack(hashes: Any) -> Words:
    packed = b"".join(hashes.to_pylist())
    return np.frombuffer(packed, "<u8").reshape(len(hashes), len(WAYS), -1, HASH_WORDS)


class ClipDigests(Sequence[str]):
    """Ids of clips, spelled when they are asked for."""

    def __init__(self, packed: NDArray[np.bytes_]) -> None:
        self._packed = packed

    def __len__(self) -> int:
        return len(self._packed)

    def __iter__(self) -> Iterator[str]:
        return map(spell_digest, self._packed)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return ClipDigests(self._packed[place])
        return spell_digest(self._packed[place])
