"""Statistics collected while a benchmark is read: its identity, and reasons for an empty result."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from unreel.benchmarks.entry import REASONS_SHOWN, Entry, Rejected, Row
from unreel.benchmarks.no_result_advice import build_no_entry_error, build_no_split_error
from unreel.benchmarks.records import to_record
from unreel.core.clip import Generated
from unreel.core.errors import UnreelError

if TYPE_CHECKING:
    from unreel.benchmarks.subset import SampleCounts

_SCHEME: Final = "1"
"""Another number for another way to make fingerprints: two schemes cannot be compared."""
_BYTES: Final = 32
_SPELL: Final = json.JSONEncoder().encode
_SPLITS_KEPT: Final = 100
_JUDGED: Final = (
    *("score", "problem_description", "standard_adherence", "error_family"),
    *("traces", "ratings", "votes"),
)
"""What people said of a clip, as a record holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkIdentity:
    """Identity of a benchmark, independent of its path and the order of its rows."""

    fingerprint: str
    n_entries: int


class BenchmarkStats:
    """Statistics of a benchmark, collected one row at a time with little memory."""

    def __init__(self) -> None:
        self.n_entries = 0
        self.n_rejected = 0
        self.rejected: list[Rejected] = []
        """The first rows that cannot be used."""
        self.drawn: SampleCounts | None = None
        """Counts of the sample, if not all rows are used."""
        self.splits: set[str] = set()
        """Those that entries name; of very many, the first."""
        self._sum = 0
        self._is_whole = False

    def watch(self, rows: Iterable[Row]) -> Iterator[Entry]:
        """Yield the entries of `rows` and record each entry; count rejected rows."""
        for row in rows:
            if isinstance(row, Rejected):
                self.reject(row)
            else:
                self._note(row)
                yield row
        self._is_whole = True

    def reject(self, row: Rejected) -> None:
        """Count what cannot be used; the first of it is shown."""
        self.n_rejected += 1
        if len(self.rejected) < REASONS_SHOWN:
            self.rejected.append(row)

    @property
    def identity(self) -> BenchmarkIdentity | None:
        """Return the identity of the benchmark; `None` if the benchmark was not read to its end."""
        if not self._is_whole:
            return None
        total = self._sum % (1 << 8 * _BYTES)
        return BenchmarkIdentity(fingerprint=f"{_SCHEME}-{total:064x}", n_entries=self.n_entries)

    def nothing(self, source: str, split: str | None) -> UnreelError:
        """Return an error that explains why no entry of `source` remains, with advice."""
        if self.n_entries and split is not None:
            return build_no_split_error(split, self.splits)
        return build_no_entry_error(source, self.rejected, n_rejected=self.n_rejected)

    def _note(self, entry: Entry) -> None:
        self.n_entries += 1
        if len(self.splits) < _SPLITS_KEPT:
            self.splits.add(entry.split)
        # A sum does not depend on the order, and names come once, so that no two rows cancel out.
        self._sum += int.from_bytes(_compute_entry_digest(entry), "big")


def identify(rows: Iterable[Row]) -> BenchmarkIdentity | None:
    """Compute the identity of the benchmark that consists of `rows`."""
    reading = BenchmarkStats()
    for _ in reading.watch(rows):
        pass
    return reading.identity


def _compute_entry_digest(entry: Entry) -> bytes:
    """Return a digest of everything that affects questions and scores of the clip, except its location."""
    generated = entry.origin if isinstance(entry.origin, Generated) else None
    told: list[object] = [
        entry.name,
        None if generated is None else [generated.creator, generated.setting],
        entry.split,
        entry.group,
        entry.difficulty,
        entry.facts.duration_us,
        entry.cleaned is not None,
    ]
    if entry.traces or entry.rating or entry.ratings or entry.votes:
        record = to_record(entry, file_name="")
        told.append({name: record[name] for name in _JUDGED if record[name]})
    return blake2b(_SPELL(told).encode(), digest_size=_BYTES).digest()
