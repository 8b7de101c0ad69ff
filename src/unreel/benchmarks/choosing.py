"""A few clips of a benchmark that stand for all of it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain, zip_longest

from unreel.benchmarks.entry import Entry
from unreel.core.clip import Generated
from unreel.core.identity import digest

_Drawn = tuple[str, int, Entry]


def choose(entries: Iterable[Entry], n: int, *, seed: int) -> list[Entry]:
    """`n` of `entries` in their order: both sides alike, and every creator alike, as far as they reach.

    Which ones follows from `seed`. Clips of one scene have one lot, so that they come together and can
    still be paired. Every entry is read; no more than twice `n` of each creator are held.
    """
    lots: defaultdict[str | None, list[_Drawn]] = defaultdict(list)
    for place, entry in enumerate(entries):
        creator = entry.origin.creator if isinstance(entry.origin, Generated) else None
        drawn = lots[creator]
        drawn.append((digest("chosen", str(seed), entry.group or entry.name), place, entry))
        if len(drawn) > 2 * n:
            drawn[:] = _first(drawn)[:n]
    real = _first(lots.pop(None, []))
    generated = [*_in_turn(_first(lots[creator]) for creator in sorted(lots, key=str))]
    chosen = sorted([*_in_turn([generated, real])][:n], key=lambda drawn: drawn[1])
    return [entry for _, _, entry in chosen]


def _first(drawn: list[_Drawn]) -> list[_Drawn]:
    return sorted(drawn, key=lambda one: one[:2])


def _in_turn(queues: Iterable[list[_Drawn]]) -> Iterator[_Drawn]:
    """The first of each, then the second of each, until all are empty."""
    return (one for one in chain(*zip_longest(*queues)) if one is not None)
