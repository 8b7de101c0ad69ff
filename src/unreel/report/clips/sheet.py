"""The list of clips as a table, for a file."""

from collections.abc import Mapping
from typing import Any, Final

from unreel.report.boards.tables import Cell, Column, Line, Table
from unreel.report.clips.browser import FAILED, RIGHT, UNREADABLE, WRONG

_WORDS: Final = {RIGHT: "right", WRONG: "wrong", UNREADABLE: "unreadable", FAILED: "failed"}


def clips_table(index: Mapping[str, Any]) -> Table:
    """A line for each clip of a browser's index, and a column for each reviewer."""
    names = ["Clip", "Made by", *(entrant["name"] for entrant in index["entrants"])]
    lines = []
    for _, clip, creator, _, answers in index["clips"]:
        made_by = "real" if creator == -1 else index["creators"][creator]
        told = {place: _WORDS[status] for place, status in answers}
        outcomes = [told.get(place, "") for place in range(len(index["entrants"]))]
        lines.append(Line(cells=tuple(Cell(text=word) for word in (clip, made_by, *outcomes))))
    columns = tuple(Column(title=name, numbers=False) for name in names)
    return Table(caption="Clips", columns=columns, lines=tuple(lines))
