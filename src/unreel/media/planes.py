"""The hashes of a large set turned round: those of one frame and way of all clips lie together in a file.

Where fingerprints are kept all hashes of a clip lie together, and a search needs one of them of every clip, time and
again. So they are read once, and put into a nameless file of 1.7 kB a clip that goes when it is closed.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import IO, Final

import numpy as np

from unreel.media.bands import Hashes
from unreel.media.fingerprint import HASH_WORDS, WAYS
from unreel.media.prints import ManyPrints

_HASH_BYTES: Final = HASH_WORDS * 8


class FramePlanes:
    """Some frames of all clips, each hashed in all ways, in an open file."""

    def __init__(self, file: IO[bytes], prints: ManyPrints, frames: Sequence[int]) -> None:
        self._file = file
        self._frames = {frame: number for number, frame in enumerate(frames)}
        self._n_clips = len(prints.sketches)
        self._places = np.empty(self._n_clips, np.intp)
        start = 0
        for places, words in prints.blocks():
            self._places[start : start + len(places)] = places
            for frame, way in product(frames, range(len(WAYS))):
                file.seek(self._offset(frame, way) + start * _HASH_BYTES)
                file.write(words[:, way, frame].tobytes())
            start += len(places)

    def read(self, frame: int, way: int) -> Hashes:
        """The hashes of one frame in one way, in the order of the clips."""
        self._file.seek(self._offset(frame, way))
        lying = np.frombuffer(self._file.read(self._n_clips * _HASH_BYTES), np.uint64)
        hashes = np.empty((self._n_clips, HASH_WORDS), np.uint64)
        hashes[self._places] = lying.reshape(-1, HASH_WORDS)
        return hashes

    def _offset(self, frame: int, way: int) -> int:
        return (self._frames[frame] * len(WAYS) + way) * self._n_clips * _HASH_BYTES


@contextmanager
def turn_round(
    prints: ManyPrints, frames: Sequence[int], inside: Path | None
) -> Iterator[FramePlanes]:
    """These frames of all clips, in a file of the folder `inside`, or where the system puts such files."""
    with tempfile.TemporaryFile(prefix="unreel-", dir=inside) as file:
        yield FramePlanes(file, prints, frames)
