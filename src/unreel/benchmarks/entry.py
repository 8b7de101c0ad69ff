"""One clip of a benchmark with its truth, and one row that cannot become one."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from unreel.core.clip import Generated, Origin
from unreel.core.judgement import Label, Rating, Vote
from unreel.core.trace import Trace

REASONS_SHOWN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredFacts:
    """Properties of the file as declared by the source; None if not declared. The file itself may differ."""

    width: int | None = None
    height: int | None = None
    rate: Fraction | None = None
    """Frames per second."""
    n_frames: int | None = None
    duration_us: int | None = None


NOTHING_DECLARED: Final = DeclaredFacts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One clip and all that the benchmark's makers say of it. Empty text means: not said."""

    name: str
    """Unique within its benchmark: answers refer to it."""
    location: str
    """Path below the benchmark's folder with `/` between its parts, or a URL."""
    origin: Origin
    cleaned: str | None = None
    """Where a copy of the clip without its watermark lies, in the words of `location`."""
    split: str = ""
    group: str = ""
    """Clips of one group show the same scene."""
    prompt: str = ""
    difficulty: str = ""
    traces: tuple[Trace, ...] = ()
    """One for each annotation row, in the order of the source."""
    rating: Rating | None = None
    """The agreed realism score."""
    ratings: tuple[Rating, ...] = ()
    """The scores it was agreed from, one for each annotator, where the source has them."""
    votes: tuple[Vote, ...] = ()
    facts: DeclaredFacts = NOTHING_DECLARED
    licence: str = ""
    source: str = ""

    @property
    def label(self) -> Label:
        """The side that the clip belongs to."""
        return Label.GENERATED if isinstance(self.origin, Generated) else Label.REAL

    @property
    def n_units(self) -> int:
        """Annotation rows, the unit that `trace` scores: one for each trace, one where none is."""
        return max(1, len(self.traces))


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row or file that cannot be used, and why. It is shown and counted, never dropped."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


Row = Entry | Rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkCounts:
    """Counts of a benchmark's content."""

    entries: Mapping[tuple[str, Label], int]
    """Clips by split and side."""
    units: Mapping[tuple[str, Label], int]
    """Annotation rows by split and side."""
    n_rejected: int
    rejected: tuple[Rejected, ...]
    """The first rows that were rejected."""

    @property
    def n_entries(self) -> int:
        """All clips."""
        return sum(self.entries.values())

    @property
    def n_units(self) -> int:
        """All annotation rows."""
        return sum(self.units.values())


def take_census(rows: Iterable[Row]) -> BenchmarkCounts:
    """Count `rows` in one pass, keeping none but the first rejected ones."""
    entries: Counter[tuple[str, Label]] = Counter()
    units: Counter[tuple[str, Label]] = Counter()
    rejected: list[Rejected] = []
    n_rejected = 0
    for row in rows:
        if isinstance(row, Rejected):
            n_rejected += 1
            if len(rejected) < REASONS_SHOWN:
                rejected.append(row)
            continue
        entries[row.split, row.label] += 1
        units[row.split, row.label] += row.n_units
    return BenchmarkCounts(
        entries=dict(entries), units=dict(units), n_rejected=n_rejected, rejected=tuple(rejected)
    )
