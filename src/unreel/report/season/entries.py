"""The log of a season as a table: every attempt, refusal and withdrawal."""

from collections.abc import Sequence
from typing import Final

from unreel.arena.log import LogEvent
from unreel.core.server import drop_address, hide_addresses
from unreel.report.boards.downloads import FOLDER
from unreel.report.boards.tables import BoardTable, TableCell, TableColumn, TableLine, exact_cell

_TITLES: Final = ("When (UTC)", "Entry", "Kind", "Team", "Attempt", "State", "Why")


def entry_tables(events: Sequence[LogEvent]) -> list[BoardTable]:
    """One table, the latest first; none where no log is kept."""
    if not events:
        return []
    columns = tuple(TableColumn(title=title, numbers=title == "Attempt") for title in _TITLES)
    caption = "What happened to every entry, the latest first"
    lines = tuple(map(_line, reversed(events)))
    return [BoardTable(caption=caption, columns=columns, lines=lines, file=f"{FOLDER}/entries")]


def _line(event: LogEvent) -> TableLine:
    when = f"{event.when:%Y-%m-%d %H:%M}" if event.when else ""
    words = (when, drop_address(event.entry), event.kind, event.team)
    return TableLine(
        cells=(
            *(TableCell(text=text) for text in words),
            exact_cell(event.attempt),
            TableCell(text=event.state.value),
            TableCell(text=hide_addresses("; ".join(event.reasons))),
        )
    )
