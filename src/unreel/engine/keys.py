"""Keys of a table by the million: each stands as eight bytes."""

import hashlib
from collections import Counter
from typing import Any, Final

import numpy as np

FRUGAL: Final = {
    "batch_size": 4096,
    "batch_readahead": 2,
    "fragment_readahead": 2,
    "io_buffer_size": 8 * 2**20,
}
"""A scan of all keys reads ahead without bound otherwise."""


def doubled_keys(dataset: Any) -> list[str]:
    """Keys with more than one row, sorted, found with eight bytes of memory for a row."""
    marks = np.empty(dataset.count_rows(), dtype=np.uint64)
    at = 0
    for batch in dataset.scanner(columns=["key"], **FRUGAL).to_batches():
        for key in batch.column("key").to_pylist():
            marks[at] = mark_of(key)
            at += 1
    marks.sort()
    suspects = {int(mark) for mark in marks[1:][marks[1:] == marks[:-1]]}
    if not suspects:
        return []
    tally: Counter[str] = Counter()
    for batch in dataset.scanner(columns=["key"], **FRUGAL).to_batches():
        tally.update(key for key in batch.column("key").to_pylist() if mark_of(key) in suspects)
    return sorted(key for key, n in tally.items() if n > 1)


def mark_of(key: str) -> int:
    """Eight bytes that stand for a key where millions are compared."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big")
