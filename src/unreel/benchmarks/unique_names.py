"""Check that names are unique, for tables of any length; loads numpy."""

from collections.abc import Iterable, Iterator
from hashlib import blake2b

import numpy as np

from unreel.benchmarks.entry import Entry, Rejected, Row

NAMED_BEFORE = "duplicate name. Give each clip its own"
_LATELY = 1 << 16
"""Minimum number of recent names that are moved from a set to an array, which needs a fifth of the memory."""
_HALF = 8


class SeenNameSet:
    """The names seen so far, as digests of 16 bytes each."""

    def __init__(self) -> None:
        self._lately: set[bytes] = set()
        self._before = np.empty((0, 2), np.uint64)
        """Both halves of each older digest, sorted by the first half."""

    def add(self, name: str) -> bool:
        """Add `name`; return False if the name was added before."""
        digest = blake2b(name.encode(), digest_size=2 * _HALF).digest()
        if digest in self._lately or (len(self._before) and self._was_before(digest)):
            return False
        self._lately.add(digest)
        if len(self._lately) >= max(_LATELY, len(self._before) // 8):
            new = np.frombuffer(b"".join(self._lately), np.uint64).reshape(-1, 2)
            merged = np.concatenate([self._before, new])
            self._before = merged[np.argsort(merged[:, 0], kind="stable")]
            self._lately.clear()
        return True

    def _was_before(self, digest: bytes) -> bool:
        first, second = np.frombuffer(digest, np.uint64)
        index = int(self._before[:, 0].searchsorted(first))
        while index < len(self._before) and self._before[index, 0] == first:
            if self._before[index, 1] == second:
                return True
            index += 1
        return False


def reject_repeated_names(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield `rows`; replace each entry that repeats an earlier name with a `Rejected`."""
    names = SeenNameSet()
    for row in rows:
        if isinstance(row, Entry) and not names.add(row.name):
            yield Rejected(row.name, NAMED_BEFORE)
        else:
            yield row
