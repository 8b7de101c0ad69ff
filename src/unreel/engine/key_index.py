"""In-memory index of a table's keys: twelve bytes per row, built by one scan of the key column.

A key has a 32-byte hash (stamp), from which an 8-byte short hash is computed. Sorted short hashes
give the candidate rows of a key; the caller compares the stamp, or the key of the fetched row,
so that results are exact despite collisions. Both hashes use a secret of the process, so that
colliding keys cannot be prepared.
"""

import hashlib
import secrets
from binascii import Error, hexlify, unhexlify
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unreel.core.chunks import SCAN_ROWS
from unreel.core.errors import InvalidValueError

FRUGAL = {
    "batch_size": 16_384,
    "batch_readahead": 2,
    "fragment_readahead": 2,
    "io_buffer_size": 8 * 2**20,
}
"""Options that limit the read-ahead of a scan of all keys, which is unlimited by default."""
STAMP_BYTES = 32
_TAKEN = 4_096
_AT_ONCE = 65_536
_OFFSET_BITS = 32
_OFFSET = np.uint64(2**_OFFSET_BITS - 1)
_MAX_SLOTS = 2**32
_SHORT_HASH_BITS = 64
_DIGITS = 2 * STAMP_BYTES


def iter_key_arrays(keys: Sequence[str]) -> Iterator[Any]:
    """Yield arrays of up to 65,536 keys; raise `InvalidValueError` for a key that is no UTF-8 text."""
    import pyarrow as pa

    for start in range(0, len(keys), _AT_ONCE):
        chunk = keys[start : start + _AT_ONCE]
        try:
            yield pa.array(chunk, pa.string())
        except (pa.ArrowException, UnicodeError, TypeError) as error:
            raise InvalidValueError(
                f"a key is not a text that a table can store: {error}. Fix the code that makes the rows"
            ) from error


def _parse_hex_digits(digits: bytes) -> bytes:
    """Return the bytes of hexadecimal digits; empty if a digit is invalid or not in our spelling."""
    try:
        spelled = unhexlify(digits)
    except Error:
        return b""
    return spelled if hexlify(spelled) == digits else b""


class KeyHasher:
    """Hasher of keys to stamps (32 bytes) and short hashes (8 bytes); two hashers give different results."""

    def __init__(self) -> None:
        # Secret, so that colliding keys cannot be prepared; no result depends on it.
        self._secret = secrets.token_bytes(32)
        self._addends = np.frombuffer(secrets.token_bytes(STAMP_BYTES), dtype=np.uint32)

    def stamps(self, texts: Any) -> NDArray[np.uint8]:
        """Return the 32-byte stamp of each Arrow string: 64 hexadecimal digits decoded, others hashed."""
        n = len(texts)
        if n == 0:
            return np.empty((0, STAMP_BYTES), dtype=np.uint8)
        _, offsets, letters = texts.buffers()
        ends = np.frombuffer(offsets, dtype=np.int32)[texts.offset : texts.offset + n + 1]
        data = np.frombuffer(letters or b"", dtype=np.uint8)
        if not texts.null_count and (np.diff(ends) == _DIGITS).all():
            spelled = _parse_hex_digits(data[ends[0] : ends[-1]].tobytes())
            if spelled:
                return np.frombuffer(spelled, dtype=np.uint8).reshape(n, STAMP_BYTES)
        stamps = np.empty((n, STAMP_BYTES), dtype=np.uint8)
        for i in range(n):
            stamps[i] = self._stamp(data[ends[i] : ends[i + 1]].tobytes())
        if texts.null_count:
            stamps[texts.is_null().to_numpy(zero_copy_only=False)] = self._own(b"", b"null")
        return stamps

    def short_hashes(self, stamps: NDArray[np.uint8]) -> NDArray[np.uint64]:
        """Return the 8-byte short hash of each stamp: a sum of products of 32-bit words with few collisions."""
        words = stamps.view(np.uint32) + self._addends
        products = words[:, 0::2].astype(np.uint64) * words[:, 1::2]
        short_hashes: NDArray[np.uint64] = products.sum(axis=1, dtype=np.uint64)
        return short_hashes

    def _stamp(self, text: bytes) -> NDArray[np.uint8]:
        spelled = _parse_hex_digits(text) if len(text) == _DIGITS else b""
        return np.frombuffer(spelled, dtype=np.uint8) if spelled else self._own(text)

    def _own(self, text: bytes, person: bytes = b"") -> NDArray[np.uint8]:
        state = hashlib.blake2b(text, digest_size=STAMP_BYTES, key=self._secret, person=person)
        return np.frombuffer(state.digest(), dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class KeyHashIndex:
    """Sorted 8-byte short hashes of keys, each with the slot (row number) of its key."""

    short_hashes: NDArray[np.uint64]
    slots: NDArray[np.uint32]

    @classmethod
    def sort(cls, short_hashes: NDArray[np.uint64], slots: NDArray[np.uint32]) -> "KeyHashIndex":
        """Build the index from short hashes in any order."""
        order = np.argsort(short_hashes)
        return cls(short_hashes[order], slots[order])

    def find(self, short_hashes: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.uint32]]:
        """Return pairs of an index into `short_hashes` and a slot whose key has that short hash, in any order."""
        order = np.argsort(short_hashes)
        targets = short_hashes[order]
        leading = (targets >> np.uint64(_SHORT_HASH_BITS - self._n_leading)).astype(np.intp)
        low, high = self._heads[leading], self._heads[leading + 1]
        for _ in range(int((high - low).max(initial=0)).bit_length()):
            middle = (low + high) >> 1
            is_after = (low < high) & (self.short_hashes.take(middle, mode="clip") < targets)
            low, high = np.where(is_after, middle + 1, low), np.where(is_after, high, middle)
        first = low
        n_each = self._are_at(first, targets).astype(np.intp)
        several = np.flatnonzero(self._are_at(first + n_each, targets))
        beyond = np.searchsorted(self.short_hashes, targets[several], side="right")
        n_each[several] = beyond - first[several]
        indices = np.repeat(order, n_each)
        before_each = np.cumsum(n_each) - n_each
        slots = self.slots[np.repeat(first - before_each, n_each) + np.arange(len(indices))]
        return indices, slots

    @cached_property
    def _heads(self) -> NDArray[np.intp]:
        """Return the start of each bucket of short hashes with equal leading bits (about eight short hashes each), and the end."""
        leading = np.arange(1 << self._n_leading, dtype=np.uint64)
        heads = np.searchsorted(
            self.short_hashes, leading << np.uint64(_SHORT_HASH_BITS - self._n_leading)
        )
        return np.append(heads, len(self.short_hashes))

    @property
    def _n_leading(self) -> int:
        return max(1, len(self.short_hashes).bit_length() - 3)

    def _are_at(self, indices: NDArray[np.intp], targets: NDArray[np.uint64]) -> NDArray[np.bool_]:
        inside = indices < len(self.short_hashes)
        inside[inside] = self.short_hashes[indices[inside]] == targets[inside]
        return inside

    def join(self, other_index: "KeyHashIndex") -> "KeyHashIndex":
        """Return the union of both indexes."""
        short_hashes = np.concatenate([self.short_hashes, other_index.short_hashes])
        slots = np.concatenate([self.slots, other_index.slots])
        order = np.argsort(short_hashes, kind="stable")  # linear time for two sorted arrays
        return KeyHashIndex(short_hashes[order], slots[order])

    def twins(self) -> NDArray[np.uint32]:
        """Return the slots of keys whose short hash occurs more than once."""
        same = self.short_hashes[1:] == self.short_hashes[:-1]
        is_twin = np.zeros(len(self.short_hashes), dtype=np.bool_)
        is_twin[1:] |= same
        is_twin[:-1] |= same
        return self.slots[is_twin]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class KeyIndex:
    """Index from keys to rows of one table version; a fragment has a slot for every row it ever had."""

    mixer: KeyHasher = field(default_factory=KeyHasher)
    short_hashes: KeyHashIndex = field(
        default_factory=lambda: KeyHashIndex(np.empty(0, np.uint64), np.empty(0, np.uint32))
    )
    faces: tuple[tuple[Any, ...], ...] = ()
    """Identity of the fragment of each range; empty if the fragment is gone."""
    ids: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    starts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    """First slot of each fragment's range, then the end of the last range."""
    seen: tuple[Any, ...] = ()
    """Identity of the table version that was indexed last."""

    @property
    def n_slots(self) -> int:
        """Return the number of slots of all fragments."""
        return int(self.starts[-1])

    def follow(self, dataset: Any) -> "KeyIndex":
        """Return the index of version `dataset`, reading new fragments, or all if half the slots are unused."""
        if _get_version_identity(dataset) == self.seen:
            return self
        present = {
            _get_fragment_identity(fragment): fragment for fragment in dataset.get_fragments()
        }
        known = {face for face in self.faces if face}
        new = [fragment for face, fragment in present.items() if face not in known]
        if not new and len(known) == len(present):
            return self
        index = self._without(present)
        if index.n_slots > 2 * len(index.short_hashes.short_hashes):
            return KeyIndex().extended(dataset, list(present.values()))
        return index.extended(dataset, new)

    def _without(self, present: Any) -> "KeyIndex":
        faces = tuple(face if face in present else () for face in self.faces)
        if faces == self.faces:
            return self
        is_there = np.array([bool(face) for face in faces])
        keep = is_there[self._find_fragments(self.short_hashes.slots)]
        short_hashes = KeyHashIndex(
            self.short_hashes.short_hashes[keep], self.short_hashes.slots[keep]
        )
        return replace(self, short_hashes=short_hashes, faces=faces)

    def extended(self, dataset: Any, new: Sequence[Any]) -> "KeyIndex":
        """Return the index with the rows of the `new` fragments added."""
        lengths = [fragment.physical_rows for fragment in new]
        longer = KeyIndex(
            mixer=self.mixer,
            faces=(*self.faces, *map(_get_fragment_identity, new)),
            ids=np.append(self.ids, np.array([f.fragment_id for f in new], dtype=np.uint64)),
            starts=np.append(self.starts, self.n_slots + np.cumsum(lengths, dtype=np.int64)),
        )
        if longer.n_slots > _MAX_SLOTS:
            raise InvalidValueError(
                f"a table of {longer.n_slots} rows is more than one process can look through. Divide it"
            )
        n_rows = sum(fragment.count_rows() for fragment in new)
        short_hashes, slots = np.empty(n_rows, np.uint64), np.empty(n_rows, np.uint32)
        at = 0
        for row_slots, batch in longer.scan(dataset, ["key"], new):
            end = at + len(row_slots)
            short_hashes[at:end] = self.mixer.short_hashes(self.mixer.stamps(batch.column("key")))
            slots[at:end] = row_slots
            at = end
        sorted_ = KeyHashIndex.sort(short_hashes, slots)
        joined = self.short_hashes.join(sorted_) if len(self.short_hashes.short_hashes) else sorted_
        return replace(longer, short_hashes=joined, seen=_get_version_identity(dataset))

    def candidates(self, keys: Sequence[str]) -> NDArray[np.uint32]:
        """Return the slots that may hold one of `keys`, without duplicates."""
        slots = [
            self.short_hashes.find(self.mixer.short_hashes(self.mixer.stamps(texts)))[1]
            for texts in iter_key_arrays(keys)
        ]
        return np.unique(np.concatenate([np.empty(0, np.uint32), *slots]))

    def scan(
        self, dataset: Any, columns: list[str], fragments: Sequence[Any] | None = None
    ) -> Iterator[tuple[NDArray[np.uint32], Any]]:
        """Yield batches of the rows of `fragments` (default: all), each with the slots of its rows."""
        scanner = dataset.scanner(
            columns=columns, fragments=fragments, with_row_address=True, **FRUGAL
        )
        for batch in scanner.to_batches():
            yield self._slots(batch.column("_rowaddr").to_numpy()), batch

    def addresses(self, slots: NDArray[np.uint32]) -> NDArray[np.uint64]:
        """Return Lance's addresses of the rows of `slots`."""
        fragment_numbers = self._find_fragments(slots)
        offsets = (slots - self.starts[fragment_numbers]).astype(np.uint64)
        return (self.ids[fragment_numbers] << np.uint64(_OFFSET_BITS)) | offsets

    def _slots(self, addresses: NDArray[np.uint64]) -> NDArray[np.uint32]:
        present = np.flatnonzero([bool(face) for face in self.faces])
        present = present[np.argsort(self.ids[present])]
        ids = addresses >> np.uint64(_OFFSET_BITS)
        fragment_numbers = present[np.searchsorted(self.ids[present], ids)]
        offsets = (addresses & _OFFSET).astype(np.int64)
        return (self.starts[fragment_numbers] + offsets).astype(np.uint32)

    def _find_fragments(self, slots: NDArray[np.uint32]) -> NDArray[np.intp]:
        return np.searchsorted(self.starts, slots, side="right") - 1

    def take(
        self, dataset: Any, slots: NDArray[np.uint32], columns: list[str] | None
    ) -> Iterator[Any]:
        """Yield the rows of `slots` in batches, in the order of the table."""
        addresses = np.sort(self.addresses(slots))
        for start in range(0, len(addresses), _TAKEN):
            chunk = addresses[start : start + _TAKEN].tolist()
            rows = dataset._take_rows(chunk, columns=columns)  # noqa: SLF001  the one way by address
            yield from rows.to_batches(SCAN_ROWS)

    def doubled(self, dataset: Any) -> list[str]:
        """Return the keys of the table that have more than one row, sorted."""
        tally: Counter[str] = Counter()
        for batch in self.take(dataset, self.short_hashes.twins(), ["key"]):
            tally.update(batch.column("key").to_pylist())
        return sorted(key for key, n in tally.items() if n > 1)


def _get_version_identity(dataset: Any) -> tuple[Any, ...]:
    """Return the identity of a version of a table, which differs for a new table at the same location."""
    fragments = dataset.get_fragments()
    return (dataset.version, len(fragments), *map(_get_fragment_identity, fragments[-1:]))


def _get_fragment_identity(fragment: Any) -> tuple[Any, ...]:
    """Return the identity of a fragment's rows, which changes with deletions."""
    metadata = fragment.metadata
    gone = metadata.deletion_file
    files = tuple(file.path for file in metadata.files)
    return (fragment.fragment_id, files, "" if gone is None else gone.json())
