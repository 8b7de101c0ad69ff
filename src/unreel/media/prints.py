"""Many fingerprints, as those who compare them see them."""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from unreel.media.fingerprint import SKETCH_SIDE, ClipFingerprint

_READ_AT_ONCE: Final = 4_096

Places = NDArray[np.intp]
Words = NDArray[np.uint64]
"""Clips x ways x frames x words."""


class FingerprintSet(Protocol):
    """Fingerprints: sketches at hand, hashes read as they are needed."""

    @property
    def names(self) -> Sequence[str]:
        """A name for each clip."""
        ...

    @property
    def sketches(self) -> NDArray[np.uint8]:
        """Clips x 64 grey levels."""
        ...

    def words(self, places: Places) -> Words:
        """The hashes of the clips at `places`."""
        ...


class ManyPrints(FingerprintSet, Protocol):
    """Fingerprints that may be too many to look at one by one."""

    def blocks(self) -> Iterator[tuple[Places, Words]]:
        """The hashes of all clips and their places, a block at a time, in the order that is read most easily."""
        ...


class HeldPrints:
    """Fingerprints that are all in memory."""

    def __init__(self, prints: Sequence[tuple[str, ClipFingerprint]]) -> None:
        self.names = [name for name, _ in prints]
        grids = np.frombuffer(b"".join(own.sketch for _, own in prints), np.uint8)
        self.sketches = grids.reshape(len(prints), SKETCH_SIDE**2)
        self._own = [own for _, own in prints]

    def words(self, places: Places) -> Words:
        """The hashes of the clips at `places`."""
        return np.stack([self._own[place].words() for place in places.tolist()])

    def blocks(self) -> Iterator[tuple[Places, Words]]:
        """The hashes of all clips, in their order."""
        for start in range(0, len(self._own), _READ_AT_ONCE):
            places = np.arange(start, min(start + _READ_AT_ONCE, len(self._own)))
            yield places, self.words(places)
