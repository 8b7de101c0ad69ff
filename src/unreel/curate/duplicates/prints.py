"""Fingerprints of pieces that lie on disk: sketches are read once, hashes as they are compared."""

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from unreel.curate.pieces import Pieces
from unreel.curate.working_table import spell_digest
from unreel.media.fingerprint import HASH_WORDS, SKETCH_SIDE, WAYS


class StoredPrints:
    """The fingerprints of pieces, in the order of their clips' ids."""

    def __init__(self, pieces: Pieces) -> None:
        clips = pieces.rows.digests("clip")
        order = np.argsort(clips, kind="stable")
        self._rows = pieces.rows.reordered(order)
        self.names = Digests(clips[order])
        packed = b"".join(
            b"".join(batch.column(0).to_pylist()) for batch in pieces.rows.batches(["sketch"])
        )
        grids = np.frombuffer(packed, np.uint8).reshape(-1, SKETCH_SIDE**2)
        self.sketches: NDArray[np.uint8] = grids[order]

    def words(self, places: NDArray[np.intp]) -> NDArray[np.uint64]:
        """The hashes of the clips at `places`: clips x ways x frames x words."""
        packed = b"".join(self._rows.take(places, ["hashes"]).column(0).to_pylist())
        return np.frombuffer(packed, "<u8").reshape(len(places), len(WAYS), -1, HASH_WORDS)


class Digests(Sequence[str]):
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
            return Digests(self._packed[place])
        return spell_digest(self._packed[place])
