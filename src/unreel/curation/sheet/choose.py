"""Select the clips of a contact sheet: the same number per group, sampled by a seed."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.layout import BenchmarkLayout
from unreel.benchmarks.opening import open_benchmark
from unreel.benchmarks.tables import Cells, read_table
from unreel.core.clip import Generated
from unreel.core.identity import digest
from unreel.core.judgement import Label
from unreel.core.span import MICROSECONDS
from unreel.curation.freeze.section import SPLITS


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetCandidate:
    """A clip that may be shown."""

    name: str
    location: str
    """"" where nobody knows it."""
    at_us: int | None = None
    """Which frame; None for the middle of the file."""
    lines: tuple[str, ...]
    """What is written below the picture, besides the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetGroup:
    """Clips that belong together, and how many there are in all."""

    part: str
    """Split, or step."""
    kind: str
    """Label, or reason."""
    n_clips: int
    chosen: tuple[SheetCandidate, ...]


def choose_frozen(benchmark: Path, *, most: int, seed: int) -> list[SheetGroup]:
    """Clips of the frozen benchmark by split and label."""
    opened = open_benchmark(benchmark, BenchmarkLayout.VIDEO_FOLDER)
    rows = (
        ((row.split, row.label.value), _frozen(row, opened.find(row)))
        for row in opened
        if not isinstance(row, Rejected)
    )
    groups = _choose(rows, most=most, seed=seed)
    order = {name: place for place, name in enumerate((*SPLITS, *Label))}
    last = len(order)
    return sorted(
        groups, key=lambda group: (order.get(group.part, last), order.get(group.kind, last))
    )


def choose_left_out(quarantine: Path, *, most: int, seed: int) -> list[SheetGroup]:
    """Return the excluded clips by step and reason; none if there is no such file."""
    if not quarantine.is_file():
        return []
    rows = (
        ((_text(row, "step"), _text(row, "reason")), _left_out(row))
        for row in read_table(quarantine)
        if not isinstance(row, Rejected)
    )
    return sorted(_choose(rows, most=most, seed=seed), key=lambda group: (group.part, group.kind))


def _choose(
    rows: Iterable[tuple[tuple[str, str], SheetCandidate]], *, most: int, seed: int
) -> Iterator[SheetGroup]:
    """The `most` of each group whose digests are smallest: a draw that needs no list of all."""
    heaps: defaultdict[tuple[str, str], list[tuple[int, str, SheetCandidate]]] = defaultdict(list)
    counts: Counter[tuple[str, str]] = Counter()
    for group, row in rows:
        counts[group] += 1
        rank = -int(digest("sheet", str(seed), row.name), 16)
        heap = heaps[group]
        # The count keeps two rows of one name from being compared.
        item = (rank, f"{row.name}\0{counts[group]}", row)
        if len(heap) < most:
            heapq.heappush(heap, item)
        else:
            heapq.heappushpop(heap, item)
    for (part, kind), n_clips in counts.items():
        chosen = tuple(sorted((row for _, _, row in heaps[part, kind]), key=lambda row: row.name))
        yield SheetGroup(part=part, kind=kind, n_clips=n_clips, chosen=chosen)


def _frozen(entry: Entry, location: str) -> SheetCandidate:
    facts = entry.facts
    size = f"{facts.width} x {facts.height}"
    length = "" if facts.duration_us is None else f", {facts.duration_us / MICROSECONDS:.2f} s"
    maker = entry.origin.creator if isinstance(entry.origin, Generated) else ""
    rights = ", ".join(filter(None, (entry.licence or "no licence", entry.source)))
    told = (maker, size + length, rights)
    return SheetCandidate(name=entry.name, location=location, lines=tuple(filter(None, told)))


def _left_out(row: Cells) -> SheetCandidate:
    at_us = row.get("at_us")
    return SheetCandidate(
        name=_text(row, "name"),
        location=_text(row, "location"),
        at_us=at_us if isinstance(at_us, int) and at_us >= 0 else None,
        lines=(_text(row, "detail"),),
    )


def _text(row: Cells, key: str) -> str:
    found = row.get(key)
    return found if isinstance(found, str) else ""
