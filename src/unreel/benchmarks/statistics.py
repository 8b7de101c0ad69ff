"""Statistics of a benchmark while it is read, samples of clips, and errors for an empty result."""

import difflib
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, zip_longest
from typing import Any

from unreel.benchmarks.entry import REASONS_SHOWN, Entry, Rejected, Row
from unreel.benchmarks.table_entries import convert_entry_to_record
from unreel.core.clip import Generated
from unreel.core.content_ids import digest
from unreel.core.errors import (
    InvalidSettingError,
    UnknownNameError,
    UnreadableSourceError,
    UnreelError,
)
from unreel.protocols.protocol import Protocol

_MAX_COMPARED_NAMES = 10_000
"""Maximum number of names that are searched for the nearest one."""
_PAIRED = (
    "Name the scene of each clip in a column `group`: a pair is a real and a generated clip of one"
)


def build_no_usable_entry_error(
    source: str, rejected: Sequence[Rejected], *, n_rejected: int
) -> UnreelError:
    """Build the error for a benchmark without a usable row."""
    if rejected:
        # The reason of a row includes its remedy.
        problem = f"none of its {n_rejected:,} rows can be used"
        return UnreadableSourceError(source, problem, f"The first is {rejected[0]}")
    remedy = "Add a row for each clip, or name the folder or table that holds them"
    return UnreadableSourceError(source, "the benchmark contains no clip", remedy)


def build_unknown_split_error(split: str, known: Collection[str]) -> UnreelError:
    """Build the error for a split without an entry."""
    if named := sorted({*known} - {""}):
        kind = "split"
        return UnknownNameError(kind, split, named)
    setting, problem = "split", f"the benchmark names no splits, so none is {split!r}"
    remedy = "Leave the split out, or write a column `split`"
    return InvalidSettingError(setting, problem, remedy)


def build_no_question_error(
    source: str, protocol: Protocol[Any, Any], rejected: Sequence[Rejected]
) -> UnreelError:
    """Return the error for no question of `protocol`; `rejected` entries lack its ground truth."""
    name = protocol.instrument.protocol
    problem = f"no question of {name} applies to its clips"
    remedy = "Ask with audio=off: none of them has sound"
    if protocol.subject == "pair":
        remedy = f"The first is {rejected[0]}. {_PAIRED}" if rejected else _PAIRED
    elif rejected:
        problem = f"no clip has the ground truth that {name} compares with"
        remedy = f"The first is {rejected[0]}"
    return UnreadableSourceError(source, problem, remedy)


def build_no_matching_answer_error(
    source: str, unknown: Sequence[str], names: Sequence[str]
) -> UnreelError:
    """Build the error for answers of which no name, listed in `unknown`, is one of `names`."""
    if not unknown:
        remedy = "Write a row with `name` and `text` for each clip"
        return UnreadableSourceError(source, "the file contains no answer", remedy)
    first = unknown[0]
    close = difflib.get_close_matches(first, names[:_MAX_COMPARED_NAMES], n=1)
    hint = f"Did you mean {close[0]!r}? " if close else ""
    example = f", such as {names[0]!r}" if names else ""
    problem = f"none of its {len(unknown):,} answers is about a clip of the benchmark, the first names {first!r}"
    remedy = f"{hint}Use the names or locations of its rows{example}"
    return UnreadableSourceError(source, problem, remedy)


_Lot = tuple[str, int, Entry]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkSampleCounts:
    """Size of a sample of a benchmark, in total and by label, and the number of rows to sample from."""

    n: int
    of: int
    seed: int
    real: int
    generated: int

    def __str__(self) -> str:
        counts = f"{self.real:,} real, {self.generated:,} generated"
        return f"{self.n:,} of {self.of:,} rows, drawn by seed {self.seed}: {counts}"


def sample_balanced_entries(
    entries: Iterable[Entry], n: int, *, seed: int
) -> tuple[tuple[Entry, ...], BenchmarkSampleCounts]:
    """Sample `n` of `entries`, balanced between labels and between creators as far as possible.

    The sample is in benchmark order and determined by `seed`. Clips of one scene have the same
    random rank, so that they are sampled together and can be paired. All entries are read; at most
    2 * `n` entries of each creator are held in memory.
    """
    lots: defaultdict[str | None, list[_Lot]] = defaultdict(list)
    of = 0
    for index, entry in enumerate(entries):
        of = index + 1
        creator = entry.origin.creator if isinstance(entry.origin, Generated) else None
        lot = lots[creator]
        lot.append((digest("chosen", str(seed), entry.group or entry.name), index, entry))
        if len(lot) > 2 * n:
            lot[:] = _sort_by_random_rank(lot)[:n]
    real = _sort_by_random_rank(lots.pop(None, []))
    generated = [
        *_iter_round_robin(_sort_by_random_rank(lots[creator]) for creator in sorted(lots, key=str))
    ]
    chosen = sorted([*_iter_round_robin([generated, real])][:n], key=lambda item: item[1])
    n_generated = sum(isinstance(entry.origin, Generated) for _, _, entry in chosen)
    counts = BenchmarkSampleCounts(
        n=len(chosen), of=of, seed=seed, real=len(chosen) - n_generated, generated=n_generated
    )
    return tuple(entry for _, _, entry in chosen), counts


def _sort_by_random_rank(lot: list[_Lot]) -> list[_Lot]:
    return sorted(lot, key=lambda item: item[:2])


def _iter_round_robin(queues: Iterable[list[_Lot]]) -> Iterator[_Lot]:
    """Return the first item of each queue, then the second item of each, until all queues are empty."""
    return (item for item in chain(*zip_longest(*queues)) if item is not None)


_SCHEME = "1"
"""Version of the fingerprint's computation; fingerprints of different versions cannot be compared."""
_BYTES = 32
_SPELL = json.JSONEncoder().encode
_MAX_SPLITS = 100
_JUDGED = (
    *("score", "problem_description", "standard_adherence", "error_family"),
    *("traces", "ratings", "votes"),
)
"""Fields of a record with human judgements of the clip."""


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
        """First rows that cannot be used."""
        self.drawn: BenchmarkSampleCounts | None = None
        """Counts of the sample, if not all rows are used."""
        self.splits: set[str] = set()
        """Names of the entries' splits; if there are too many, the first ones."""
        self._sum = 0
        self._is_whole = False

    def watch(self, rows: Iterable[Row]) -> Iterator[Entry]:
        """Yield the entries of `rows` and record each entry; count rejected rows."""
        for row in rows:
            if isinstance(row, Rejected):
                self.reject(row)
            else:
                self.n_entries += 1
                if len(self.splits) < _MAX_SPLITS:
                    self.splits.add(row.split)
                # A sum does not depend on the order, and names are unique, so that no rows cancel out.
                self._sum += _compute_entry_hash(row)
                yield row
        self._is_whole = True

    def reject(self, row: Rejected) -> None:
        """Count a rejected row; the first ones are stored for messages."""
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
        """Return the error for a benchmark or split without a usable entry, with advice for the user."""
        if self.n_entries and split is not None:
            return build_unknown_split_error(split, self.splits)
        return build_no_usable_entry_error(source, self.rejected, n_rejected=self.n_rejected)


def _compute_entry_hash(entry: Entry) -> int:
    """Hash everything that affects questions and scores of the clip, except its location."""
    generated = entry.origin if isinstance(entry.origin, Generated) else None
    fields: list[object] = [
        entry.name,
        None if generated is None else [generated.creator, generated.setting],
        entry.split,
        entry.group,
        entry.difficulty,
        entry.facts.duration_us,
        entry.cleaned is not None,
    ]
    if entry.traces or entry.rating or entry.ratings or entry.votes:
        record = convert_entry_to_record(entry, file_name="")
        fields.append({name: record[name] for name in _JUDGED if record[name]})
    return int.from_bytes(blake2b(_SPELL(fields).encode(), digest_size=_BYTES).digest(), "big")


def compute_benchmark_identity(rows: Iterable[Row]) -> BenchmarkIdentity | None:
    """Compute the identity of the benchmark that consists of `rows`."""
    reading = BenchmarkStats()
    for _ in reading.watch(rows):
        pass
    return reading.identity
