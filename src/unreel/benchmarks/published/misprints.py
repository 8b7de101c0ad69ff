"""Results of the recalculation of printed numbers, and tested explanations of misprints."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Final

from unreel.benchmarks.published.printed_tables import (
    REAL,
    CountTables,
    PrintedTableLine,
    RealAndGeneratedAnswerCounts,
    round_to_two_places,
)
from unreel.protocols.paper_formulas import PERCENT, compute_pooled_accuracy


class MisprintCause(StrEnum):
    """Cause of a printed number that does not follow from its inputs."""

    REPEATED_ROW = "repeated row"
    REPEATED_TABLE = "repeated table"
    ROTATED_COUNTS = "rotated counts"
    SWAPPED_TOTALS = "swapped totals"
    COUNT_SLIP = "count slip"
    HALF_POINT_OFF = "half a point off"
    EXCHANGED_RANKS = "exchanged ranks"
    WRONG_AVERAGE = "wrong average"
    ERROR_OF_PRINT = "error of print"
    IMPOSSIBLE_SHARE = "impossible share"
    TEXT_AGAINST_TABLE = "text against table"
    UNEXPLAINED = "unexplained"

    @property
    def sentence(self) -> str:
        """Return the cause as a sentence."""
        return _SENTENCES[self]


_SENTENCES = {
    MisprintCause.REPEATED_ROW: "The row repeats the row of another split.",
    MisprintCause.REPEATED_TABLE: "The count table repeats the counts of another reviewer.",
    MisprintCause.ROTATED_COUNTS: "The Veo rows of tables 12 to 15 are each printed one table too early.",
    MisprintCause.SWAPPED_TOTALS: "The totals of two settings of the creator are swapped.",
    MisprintCause.COUNT_SLIP: "Likely one count or total differs from the one that was used.",
    MisprintCause.HALF_POINT_OFF: "Print and calculation differ by exactly 0.50: likely a wrong digit.",
    MisprintCause.EXCHANGED_RANKS: "The ranks of two neighbours are swapped.",
    MisprintCause.WRONG_AVERAGE: "The rank follows from an average that is itself wrong.",
    MisprintCause.ERROR_OF_PRINT: "No count near these and no slip of one digit gives it: an error of print.",
    MisprintCause.IMPOSSIBLE_SHARE: "No whole count gives the printed share.",
    MisprintCause.TEXT_AGAINST_TABLE: "The text gives another count than the table.",
    MisprintCause.UNEXPLAINED: "No cause is known.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedMisprint:
    """A printed number that the recalculation does not give, with the calculation and the cause."""

    cell: str
    formula: str
    calculated: Decimal | None
    """Recalculated number; `None` if no count can give the printed number."""
    printed: Decimal
    cause: MisprintCause
    because: str
    """Evidence for the cause: tested explanations and their results."""

    def __str__(self) -> str:
        calculated = "nothing" if self.calculated is None else self.calculated
        head = f"{self.cell}: {self.formula} = {calculated}, printed {self.printed}"
        return f"{head}. {self.cause.sentence} {self.because}."


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedNumberCheckResult:
    """Result of the recalculation of one group of printed numbers, with the misprints."""

    name: str
    formula: str
    reproduced: int
    total: int
    expected: int
    """Exact number of cells that must reproduce."""
    expected_total: int
    misprints: tuple[PrintedMisprint, ...] = ()
    no_counts: tuple[str, ...] = ()
    """Printed cells without underlying counts, which are not part of `total`."""

    @property
    def ok(self) -> bool:
        """Return whether exactly the expected number of cells reproduce, and every other cell has a cause."""
        return (
            self.reproduced == self.expected
            and self.total == self.expected_total
            and self.reproduced + len(self.misprints) == self.total
        )

    def __str__(self) -> str:
        state = "ok" if self.ok else f"expected {self.expected} of {self.expected_total}"
        return f"{self.name}: {self.reproduced} of {self.total} reproduce ({state})"


HALF_POINT: Final = Decimal("0.50")
VEO: Final = "Veo-3.1-fast ImgText2Vid"
ROTATED: Final = (12, 13, 14, 15)

Explanation = tuple[MisprintCause, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedCell:
    """A printed percentage and the counts it should follow from."""

    line: str
    column: str
    printed: Decimal
    table: int
    """Number of the table with the counts."""
    creator: str
    """Line of table 3 whose clips were judged."""
    real: RealAndGeneratedAnswerCounts | None
    """Counts of real clips; `None` in table 3, whose cells are about generated clips only."""
    fake: RealAndGeneratedAnswerCounts

    @property
    def name(self) -> str:
        """Return the position of the cell in its table: row and column."""
        return f"{self.line}, {self.column}"

    @property
    def formula(self) -> str:
        """Return the formula of the cell with its numbers."""
        if self.real is None:
            return f"100 x {self.fake.said_fake}/{self.fake.valid}"
        above = f"({self.real.said_real} + {self.fake.said_fake})"
        return f"100 x {above}/({self.real.valid} + {self.fake.valid})"

    def value(self, fake: RealAndGeneratedAnswerCounts | None = None) -> Decimal:
        """Recalculate the cell from its own counts, or with `fake` instead of its generated counts."""
        count = self.fake if fake is None else fake
        if self.real is None:
            return round_to_two_places(Fraction(PERCENT * count.said_fake, count.valid))
        pooled = compute_pooled_accuracy(
            real_correct=self.real.said_real,
            n_real=self.real.valid,
            fake_correct=count.said_fake,
            n_fake=count.valid,
        )
        return round_to_two_places(pooled)


def explain_cell_misprint(cell: PrintedCell, tables: CountTables) -> Explanation:
    """Return the first cause that explains the printed percentage of `cell`, and the evidence.

    A cause is accepted if the recalculation with it gives the printed number, or if the table repeats
    another table. Otherwise the size of the error is the evidence.
    """
    for guess in (_explain_repeated_table, _explain_rotated_counts, _explain_swapped_totals):
        explanation = guess(cell, tables)
        if explanation is not None:
            return explanation
    slips = list(_iter_near_counts(cell.fake))
    for slip in slips:
        if cell.value(slip) == cell.printed:
            return (
                MisprintCause.COUNT_SLIP,
                f"{slip} instead of {cell.fake} gives the printed {cell.printed}",
            )
    nearest = min(slips, key=lambda slip: abs(cell.value(slip) - cell.printed))
    cause, because = _explain_by_size_of_error(cell.printed, cell.value())
    return cause, f"{because}; the nearest counts, {nearest}, give {cell.value(nearest)}"


def explain_average_misprint(line: PrintedTableLine, cells: Sequence[PrintedCell]) -> Explanation:
    """Return why a printed average is not the mean of `cells`, the line's cells that have counts."""
    total = sum(map(Fraction, line.cells.values()), Fraction())
    for cell in cells:
        n_clips = cell.fake.valid + (cell.real.valid if cell.real else 0)
        for step in (1, -1):
            mean = (total + Fraction(step * PERCENT, n_clips)) / len(line.cells)
            if round_to_two_places(mean) == line.average:
                more = "more" if step > 0 else "less"
                return (
                    MisprintCause.COUNT_SLIP,
                    f"One answer {more} in one cell gives the printed {line.average}",
                )
    return _explain_by_size_of_error(line.average, round_to_two_places(total / len(line.cells)))


def rank_printed_lines(
    values: Mapping[str, Fraction], lines: Sequence[PrintedTableLine], *, best_is_high: bool
) -> dict[str, int]:
    """Rank the lines of a table by `values`, from 1; a line with audio has the rank of its base line."""
    bases = [line.name for line in lines if line.base == line.name]
    order = sorted(bases, key=lambda name: values[name], reverse=best_is_high)
    ranks = {name: rank for rank, name in enumerate(order, start=1)}
    return {line.name: ranks[line.base] for line in lines}


def explain_rank_misprint(
    line: PrintedTableLine,
    lines: Sequence[PrintedTableLine],
    *,
    ranks: Mapping[str, int],
    best_is_high: bool,
) -> Explanation:
    """Return the cause of a printed rank that is not the rank of the line's mean, and the evidence."""
    averages = {other.name: Fraction(other.average) for other in lines}
    if rank_printed_lines(averages, lines, best_is_high=best_is_high)[line.name] == line.rank:
        return (
            MisprintCause.WRONG_AVERAGE,
            f"The printed average {line.average} has rank {line.rank}",
        )
    for other in lines:
        if other.rank == ranks[line.name] and line.rank == ranks[other.name] and other != line:
            return (
                MisprintCause.EXCHANGED_RANKS,
                f"{other.name} has rank {other.rank}, {line.name} {line.rank}",
            )
    return MisprintCause.UNEXPLAINED, f"No neighbour has rank {ranks[line.name]} instead"


def _explain_repeated_table(cell: PrintedCell, tables: CountTables) -> Explanation | None:
    rows = tables[cell.table]
    for number, earlier in tables.items():
        if number >= cell.table or rows[REAL] != earlier[REAL]:
            continue
        same = sum(rows[source] == earlier.get(source) for source in rows)
        if same >= len(rows) - 1:
            because = (
                f"{same} of the {len(rows)} rows of table {cell.table}, the real one among them, are "
                f"those of table {number}; likely the printed line comes from counts not in print"
            )
            return MisprintCause.REPEATED_TABLE, because
    return None


def _explain_rotated_counts(cell: PrintedCell, tables: CountTables) -> Explanation | None:
    if cell.creator != VEO or cell.table not in ROTATED:
        return None
    before = ROTATED[ROTATED.index(cell.table) - 1]
    count = tables[before][VEO]
    if cell.value(count) != cell.printed:
        return None
    return (
        MisprintCause.ROTATED_COUNTS,
        f"The row of table {before}, {count}, gives the printed {cell.printed}",
    )


def _explain_swapped_totals(cell: PrintedCell, tables: CountTables) -> Explanation | None:
    family = cell.creator.partition(" ")[0]
    for source, count in tables[cell.table].items():
        if source == cell.creator or source.partition(" ")[0] != family:
            continue
        if cell.fake.said_fake > count.valid:
            continue
        swapped = RealAndGeneratedAnswerCounts(valid=count.valid, said_fake=cell.fake.said_fake)
        if cell.value(swapped) == cell.printed:
            because = f"{swapped}, with the total of {source}, gives the printed {cell.printed}"
            return MisprintCause.SWAPPED_TOTALS, because
    return None


def _iter_near_counts(
    count: RealAndGeneratedAnswerCounts,
) -> Iterator[RealAndGeneratedAnswerCounts]:
    """Yield counts that differ from `count` by one or two answers, nearest first."""
    steps = [(fake, valid) for fake in range(-2, 3) for valid in range(-2, 3)]
    for fake, valid in sorted(steps, key=lambda step: abs(step[0]) + abs(step[1])):
        slip = RealAndGeneratedAnswerCounts(
            valid=count.valid + valid, said_fake=count.said_fake + fake
        )
        if 0 < abs(fake) + abs(valid) <= 2 and 0 <= slip.said_fake <= slip.valid:  # noqa: PLR2004
            yield slip


def _explain_by_size_of_error(printed: Decimal, calculated: Decimal) -> Explanation:
    distance = abs(printed - calculated)
    if distance == HALF_POINT:
        return MisprintCause.HALF_POINT_OFF, f"{printed} against {calculated}"
    return MisprintCause.ERROR_OF_PRINT, f"It is {distance} off"
