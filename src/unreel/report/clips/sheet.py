"""The list of clips as a table, for a file."""

from unreel.report.boards.tables import Cell, Column, Line, Table
from unreel.report.clips.book import STATUSES
from unreel.report.clips.browser import Browser


def clips_table(browser: Browser) -> Table:
    """A line for each clip of a browser, and a column for each reviewer."""
    index = browser.index
    names = ["Clip", "Made by", *(entrant["name"] for entrant in index["entrants"])]
    lines = []
    for _, clip, creator, _, answers in browser.lines:
        made_by = "real" if creator == -1 else index["creators"][creator]
        told = {place: STATUSES[status] for place, status in answers}
        outcomes = [told.get(place, "") for place in range(len(index["entrants"]))]
        lines.append(Line(cells=tuple(Cell(text=word) for word in (clip, made_by, *outcomes))))
    columns = tuple(Column(title=name, numbers=False) for name in names)
    return Table(caption="Clips", columns=columns, lines=tuple(lines))
