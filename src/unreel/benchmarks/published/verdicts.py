"""Result of a recalculation: the number of reproduced cells, and the causes of the others."""

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum


class MisprintCause(StrEnum):
    """Cause of a printed figure that does not follow from its inputs."""

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
    MisprintCause.ROTATED_COUNTS: "The Veo rows of tables 12 to 15 each stand one table too early.",
    MisprintCause.SWAPPED_TOTALS: "The totals of two settings of the creator are swapped.",
    MisprintCause.COUNT_SLIP: "Likely one count or total differs from the one that was used.",
    MisprintCause.HALF_POINT_OFF: "Print and calculation differ by exactly 0.50: likely a wrong digit.",
    MisprintCause.EXCHANGED_RANKS: "Two neighbours hold each other's rank.",
    MisprintCause.WRONG_AVERAGE: "The rank follows from an average that is itself wrong.",
    MisprintCause.ERROR_OF_PRINT: "No count near these and no slip of one digit gives it: an error of print.",
    MisprintCause.IMPOSSIBLE_SHARE: "No whole count gives the printed share.",
    MisprintCause.TEXT_AGAINST_TABLE: "The text gives another count than the table.",
    MisprintCause.UNEXPLAINED: "No cause is known.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedMisprint:
    """A printed figure that does not reproduce, with the arithmetic and its one cause."""

    cell: str
    formula: str
    calculated: Decimal | None
    """None where no count can give the printed figure."""
    printed: Decimal
    cause: MisprintCause
    because: str
    """The evidence: tested explanations and their results."""

    def __str__(self) -> str:
        found = "nothing" if self.calculated is None else self.calculated
        head = f"{self.cell}: {self.formula} = {found}, printed {self.printed}"
        return f"{head}. {self.cause.sentence} {self.because}."


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureCheck:
    """One family of printed figures, recalculated. `ok` holds while both counts stay as pinned."""

    name: str
    formula: str
    reproduced: int
    total: int
    expected: int
    """How many must reproduce: neither fewer nor more."""
    expected_total: int
    misprints: tuple[PrintedMisprint, ...] = ()
    no_counts: tuple[str, ...] = ()
    """Printed cells without counts behind them; they are no part of `total`."""

    @property
    def ok(self) -> bool:
        """Return whether exactly the expected cells reproduce and every other cell has a cause."""
        return (
            self.reproduced == self.expected
            and self.total == self.expected_total
            and self.reproduced + len(self.misprints) == self.total
        )

    def __str__(self) -> str:
        state = "ok" if self.ok else f"expected {self.expected} of {self.expected_total}"
        return f"{self.name}: {self.reproduced} of {self.total} reproduce ({state})"
