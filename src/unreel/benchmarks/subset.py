"""A few clips of a benchmark that stand for all of it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest

from unreel.benchmarks.entry import Entry
from unreel.core.clip import Generated
from unreel.core.identity import digest

_Lot = tuple[str, int, Entry]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleCounts:
    """Number of sampled rows and of all rows, by label."""

    n: int
    of: int
    seed: int
    real: int
    generated: int

    def __str__(self) -> str:
        sides = f"{self.real:,} real, {self.generated:,} generated"
        return f"{self.n:,} of {self.of:,} rows, drawn by seed {self.seed}: {sides}"


@dataclass(frozen=True, slots=True)
class SampledEntries:
    """The sampled entries, in benchmark order, and the counts of the sample."""

    entries: tuple[Entry, ...]
    drawn: SampleCounts


def choose(entries: Iterable[Entry], n: int, *, seed: int) -> SampledEntries:
    """Sample `n` of `entries`, balanced between labels and between creators as far as possible.

    The sample is determined by `seed`. Clips of one scene have the same random rank, so that they
    are sampled together and can be paired. All entries are read; at most 2 * `n` entries of each
    creator are held in memory.
    """
    lots: defaultdict[str | None, list[_Lot]] = defaultdict(list)
    of = 0
    for place, entry in enumerate(entries):
        of = place + 1
        creator = entry.origin.creator if isinstance(entry.origin, Generated) else None
        lot = lots[creator]
        lot.append((digest("chosen", str(seed), entry.group or entry.name), place, entry))
        if len(lot) > 2 * n:
            lot[:] = _sort_lot(lot)[:n]
    real = _sort_lot(lots.pop(None, []))
    generated = [*_iter_round_robin(_sort_lot(lots[creator]) for creator in sorted(lots, key=str))]
    chosen = sorted([*_iter_round_robin([generated, real])][:n], key=lambda one: one[1])
    made = sum(isinstance(entry.origin, Generated) for _, _, entry in chosen)
    drawn = SampleCounts(n=len(chosen), of=of, seed=seed, real=len(chosen) - made, generated=made)
    return SampledEntries(tuple(entry for _, _, entry in chosen), drawn)


def _sort_lot(lot: list[_Lot]) -> list[_Lot]:
    return sorted(lot, key=lambda one: one[:2])


def _iter_round_robin(queues: Iterable[list[_Lot]]) -> Iterator[_Lot]:
    """Return the first item of each queue, then the second item of each, until all queues are empty."""
    return (one for one in chain(*zip_longest(*queues)) if one is not None)
