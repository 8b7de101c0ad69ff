"""Conditions for a rank. Each entrant is checked alone."""

from collections.abc import Sequence
from typing import Final

from unreel.core.estimate import Unmeasured
from unreel.protocols.correctness import decided
from unreel.report.boards.figures import metric_of
from unreel.report.entrants import ReportEntrant, RunItem

_NAMED: Final = 3
"""Cells that are named before the others are counted."""


def why_unranked(entrant: ReportEntrant, ranks_by: str) -> str:
    """Return the reason why `entrant` has no rank, as text; "" if it has one.

    A figure over some of the creators is no figure over all: real clips, and the clips of each
    creator, need one readable answer.
    """
    if entrant.n_not_asked:
        return f"{entrant.n_not_asked:,} not asked yet"
    read = {cell_of(item) for item in entrant.items if decided(item.outcome) is not None}
    if not read:
        return f"no readable answer to any of {len(entrant.items):,} questions"
    lacking = [cell for cell in dict.fromkeys(map(cell_of, entrant.items)) if cell not in read]
    if lacking:
        return f"no readable answer for {_list(lacking)}"
    measured = metric_of(entrant, ranks_by)
    return measured.why if isinstance(measured, Unmeasured) else ""


def cell_of(item: RunItem) -> str:
    """The part of a benchmark that a question belongs to, in words."""
    return "real clips" if item.creator is None else f"clips of {item.creator}"


def _list(cells: Sequence[str]) -> str:
    more = f" and {len(cells) - _NAMED} more" if len(cells) > _NAMED else ""
    return ", ".join(cells[:_NAMED]) + more
