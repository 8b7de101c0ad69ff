"""Filter of pending questions: one pass over a stream of any length, against the stored table.

The table is read at the start of the run. Keys that the run itself issues are remembered, so that
the growing table need not be read again. A key costs 44 bytes of memory, stored or issued; reasons
and attempts of failures are read only if they matter.
"""

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import EllipsisType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unreel.engine.key_index import STAMP_BYTES, KeyHasher, KeyHashIndex, KeyIndex, iter_key_arrays
from unreel.engine.stage import Row
from unreel.engine.table import LanceTable

_FIRST_LOOK = 64
_LARGEST_LOOK = 2_048
_ABOUT_BYTES = STAMP_BYTES // 2
"""Number of bytes that are kept of the stamp of a row's `mark`."""
_PACKED = 65_536
_SIMILAR = 2
"""Maximum ratio of the sizes of two packs that are joined."""


@dataclass(frozen=True, slots=True, eq=False)
class _ExactKeySet:
    """Set of keys that compares complete stamps, so that hash collisions do not matter."""

    short_hashes: KeyHashIndex
    stamps: NDArray[np.uint8]
    """Stamp of the key in each slot."""

    def find(
        self, short_hashes: NDArray[np.uint64], stamps: NDArray[np.uint8]
    ) -> tuple[NDArray[np.intp], NDArray[np.uint32]]:
        """Return the indices of the given keys that are in this set, and the slots of these keys."""
        indices, slots = self.short_hashes.find(short_hashes)
        same = (self.stamps[slots] == stamps[indices]).all(axis=1)
        return indices[same], slots[same]


class _IssuedQuestionKeys:
    """Keys that this run has issued: recent keys in a set, older keys in sorted index packs."""

    def __init__(self, hasher: KeyHasher) -> None:
        self._mixer = hasher
        self._last: set[bytes] = set()
        self._packs: list[KeyHashIndex] = []
        self._stamps = np.empty((0, STAMP_BYTES), dtype=np.uint8)

    def are_new(
        self, short_hashes: NDArray[np.uint64], stamps: NDArray[np.uint8]
    ) -> NDArray[np.bool_]:
        """Return a mask of keys that are seen for the first time, and remember them."""
        new = np.ones(len(short_hashes), dtype=np.bool_)
        for pack in self._packs:
            new[_ExactKeySet(pack, self._stamps).find(short_hashes, stamps)[0]] = False
        for i in np.flatnonzero(new).tolist():
            stamp = stamps[i].tobytes()
            new[i] = stamp not in self._last
            self._last.add(stamp)
        if len(self._last) >= _PACKED:
            self._pack()
        return new

    def _pack(self) -> None:
        start, end = len(self._stamps), len(self._stamps) + len(self._last)
        self._stamps.resize((end, STAMP_BYTES), refcheck=False)  # in place, to save memory
        packed = np.frombuffer(b"".join(self._last), dtype=np.uint8)
        self._stamps[start:] = packed.reshape(-1, STAMP_BYTES)
        self._last.clear()
        slots = np.arange(start, end, dtype=np.uint32)
        pack = KeyHashIndex.sort(self._mixer.short_hashes(self._stamps[start:]), slots)
        while self._packs and len(self._packs[-1].slots) <= _SIMILAR * len(pack.slots):
            pack = self._packs.pop().join(pack)
        self._packs.append(pack)


class _StoredKeys:
    def __init__(self, table: LanceTable, retry: Collection[str]) -> None:
        dataset = table.open() if table.exists() else None
        index = KeyIndex() if dataset is None else table.key_index(dataset)
        n = index.n_slots
        self.mixer, self._retry = index.mixer, retry
        self._keys = _ExactKeySet(index.short_hashes, np.empty((n, STAMP_BYTES), dtype=np.uint8))
        has_mark_column = "mark" in table.schema.columns
        self._tries = np.zeros(n if has_mark_column or retry else 0, dtype=np.int32)
        self._failed = np.zeros(len(self._tries), dtype=np.bool_)
        self._about = np.empty((n if has_mark_column else 0, _ABOUT_BYTES), dtype=np.uint8)
        self._about[:] = self.mixer.stamps(pa.nulls(1, pa.string()))[:, :_ABOUT_BYTES]
        if dataset is not None and n:
            columns = ["attempt", "failure_reason"] if len(self._tries) else []
            columns += ["mark"] if has_mark_column and "mark" in dataset.schema.names else []
            with table.reading():
                for slots, batch in index.scan(dataset, ["key", *columns]):
                    self._keep(slots, batch, set(columns))

    def _keep(self, slots: NDArray[np.uint32], batch: Any, columns: Collection[str]) -> None:
        self._keys.stamps[slots] = self.mixer.stamps(batch.column("key"))
        if "attempt" in columns:
            self._tries[slots] = batch.column("attempt").to_numpy()
            reasons = batch.column("failure_reason").dictionary_encode()
            failed = [reason in self._retry for reason in reasons.dictionary.to_pylist()]
            codes = reasons.indices.fill_null(len(failed)).to_numpy()
            self._failed[slots] = np.array([*failed, False])[codes]
        if "mark" in columns:
            self._about[slots] = self.mixer.stamps(batch.column("mark"))[:, :_ABOUT_BYTES]

    def next_tries(
        self, short_hashes: NDArray[np.uint64], stamps: NDArray[np.uint8], about: Any
    ) -> NDArray[np.int32]:
        """Return the number of the next attempt for each key; 0 if its stored row is final."""
        tries = np.ones(len(short_hashes), dtype=np.int32)
        indices, slots = self._keys.find(short_hashes, stamps)
        tries[indices] = 0
        if len(self._tries):
            due = self._failed[slots]
            if about is not None and len(self._about):
                is_known, current = self._hash_known_versions(about)
                due |= is_known[indices] & (current[indices] != self._about[slots]).any(axis=1)
            tries[indices[due]] = self._tries[slots[due]] + 1
        return tries

    def _hash_known_versions(self, about: Sequence[str | EllipsisType | None]) -> Any:
        is_known = np.array([mark is not ... for mark in about])
        texts = pa.array([None if mark is ... else mark for mark in about], pa.string())
        return is_known, self.mixer.stamps(texts)[:, :_ABOUT_BYTES]


class PendingQuestionFilter:
    """Filter of due questions: without a row in `table`, or with a failure reason in `retry`.

    The table is read once, at the first question.
    """

    def __init__(self, table: LanceTable, retry: Collection[str] = ()) -> None:
        self._table, self._retry = table, retry
        self.already = 0
        """Number of questions that are not due, or are repeats."""

    @cached_property
    def _stored(self) -> _StoredKeys:
        return _StoredKeys(self._table, self._retry)

    @cached_property
    def _given(self) -> _IssuedQuestionKeys:
        return _IssuedQuestionKeys(self._stored.mixer)

    def sift(self, questions: Iterable[Row]) -> Iterator[Row]:
        """Yield each due question once, with its attempt number in the column `attempt`."""
        source, look = iter(questions), _FIRST_LOOK
        while chunk := list(itertools.islice(source, look)):
            (keys,) = iter_key_arrays([row["key"] for row in chunk])
            about = [row.get("mark", ...) for row in chunk]
            tries = self.next_tries(keys, about)
            for i in np.flatnonzero(tries).tolist():
                yield chunk[i] | {"attempt": int(tries[i])}
            look = min(2 * look, _LARGEST_LOOK)

    def are_due(self, keys: Sequence[str]) -> list[bool]:
        """Return for each key whether its question is due; unlike `sift`, do not mark the key as issued."""
        return [
            try_ > 0
            for texts in iter_key_arrays(keys)
            for try_ in self._stored.next_tries(*self._hash(texts), None).tolist()
        ]

    def _hash(self, keys: Any) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
        stamps = self._stored.mixer.stamps(keys)
        return self._stored.mixer.short_hashes(stamps), stamps

    def next_tries(
        self, keys: Any, about: Sequence[str | EllipsisType | None] | None = None
    ) -> NDArray[np.int32]:
        """Return due keys' attempt numbers, 0 for others and repeats; `about` has marks or, if unknown, `...`."""
        short_hashes, stamps = self._hash(keys)
        tries = self._stored.next_tries(short_hashes, stamps, about)
        due = np.flatnonzero(tries)
        tries[due[~self._given.are_new(short_hashes[due], stamps[due])]] = 0
        self.already += len(tries) - int(np.count_nonzero(tries))
        return tries
