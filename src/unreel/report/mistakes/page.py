"""The page of one reviewer: what was measured of it, and where it went wrong."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import urlencode

from unreel.core.estimate import Estimate
from unreel.core.sheet import csv_text
from unreel.pages.page import render, whole_page
from unreel.report.boards.board import BoardContender, ReportBoard
from unreel.report.boards.downloads import FOLDER, latex_block, table_files
from unreel.report.boards.figures import metric_of
from unreel.report.boards.tables import (
    BoardTable,
    FootnoteMarks,
    TableCell,
    TableColumn,
    TableLine,
    exact_cell,
    measured_cell,
)
from unreel.report.clips.browser import status_of
from unreel.report.mistakes.worst import WORDS, ReviewerMistake, worst_first

MOST: Final = 200
"""Mistakes that a page shows; its CSV has all."""
_CONFIDENCE: Final = "Confidence, %"
HOME: Final = "../index.html"
STYLES: Final = ("unreel.report:report.css",)
SCRIPTS: Final = ("unreel.report:layout.js",)


def reviewer_files(
    board: ReportBoard,
    contender: BoardContender,
    *,
    name: str,
    addresses: Mapping[tuple[str, str], Mapping[str, str]],
) -> dict[str, str]:
    """The page of `contender` and its tables; the report calls it `name`, and leads to its clips by `addresses`."""
    found = worst_first(contender.entrant)
    figures = replace(_figures(board, contender), file=f"{FOLDER}/reviewer-{contender.place}")
    worst = replace(_mistakes(board, contender, found, addresses), file=f"{figures.file}-mistakes")
    counts = Counter(map(status_of, contender.entrant.items))
    body = render(
        "unreel.report:reviewer.html",
        board=board,
        contender=contender,
        name=name,
        home=HOME,
        own_clips=f"{HOME}#{urlencode({'reviewer': contender.place})}",
        tiles=_tiles(contender, counts),
        figures=figures,
        mistakes=worst,
        n_mistakes=len(found),
    )
    titles = [column.title for column in worst.columns]
    all_mistakes = csv_text(titles, _rows(found, titles))
    tables = table_files(figures) | table_files(worst) | {f"{worst.file}.csv": all_mistakes}
    document = whole_page(
        title=f"{name}, unreel report",
        body=body,
        styles=STYLES,
        scripts=SCRIPTS,
        data=latex_block(tables),
    )
    return {contender.page: document, **tables}


def _tiles(contender: BoardContender, counts: Mapping[int, int]) -> list[tuple[str, str]]:
    right = len(contender.entrant.items) - sum(counts.get(status, 0) for status in WORDS)
    told = [(right, "right"), *((counts.get(status, 0), word) for status, word in WORDS.items())]
    if contender.entrant.n_not_asked:
        told.append((contender.entrant.n_not_asked, "not asked yet"))
    return [(f"{n:,}", word) for n, word in told]


def _figures(board: ReportBoard, contender: BoardContender) -> BoardTable:
    notes = FootnoteMarks()
    lines = []
    defined = {figure.metric for figure in board.figures}
    for figure in board.asked.figures:
        measured = metric_of(contender.entrant, figure.metric)
        if isinstance(measured, Estimate):
            cell = measured_cell(measured, notes, places=figure.places)
            link = f"{HOME}#{board.id}-figure-{figure.metric}" if figure.metric in defined else ""
            named = TableCell(text=figure.title, link=link)
            lines.append(TableLine(cells=(named, TableCell(text=figure.meaning), cell)))
    return BoardTable(
        caption="What was measured, with 95 % intervals",
        columns=(
            TableColumn(title="Figure", numbers=False),
            TableColumn(title="Meaning", numbers=False),
            TableColumn(title="Value"),
        ),
        lines=tuple(lines),
        notes=notes.listed(),
    )


def _mistakes(
    board: ReportBoard,
    contender: BoardContender,
    found: Sequence[ReviewerMistake],
    addresses: Mapping[tuple[str, str], Mapping[str, str]],
) -> BoardTable:
    tells_confidence = any(mistake.confidence is not None for mistake in found)
    columns = [TableColumn(title="#"), TableColumn(title="Clip", numbers=False)]
    columns += [TableColumn(title=title, numbers=False) for title in ("Truth", "Said")]
    columns += [TableColumn(title=_CONFIDENCE)] if tells_confidence else []
    columns.append(TableColumn(title="In its words", numbers=False))
    lines = []
    for rank, mistake in enumerate(found[:MOST], start=1):
        address = urlencode(
            {
                **addresses[contender.entrant.benchmark, mistake.item.key],
                "reviewer": contender.place,
                "show": WORDS[mistake.status],
            }
        )
        cells = [
            exact_cell(rank),
            TableCell(text=mistake.name, link=f"{HOME}#{address}"),
            TableCell(text=mistake.truth),
            TableCell(text=mistake.said),
        ]
        if tells_confidence:
            cells.append(_confidence(mistake))
        lines.append(TableLine(cells=(*cells, TableCell(text=mistake.reason))))
    return BoardTable(
        caption=f"{board.name}: answers of {contender.name} that are not right",
        columns=tuple(columns),
        lines=tuple(lines),
    )


def _rows(found: Sequence[ReviewerMistake], titles: Sequence[str]) -> Iterator[dict[str, object]]:
    """Return all mistakes as rows of a table with these columns; none is held as cells."""
    for rank, mistake in enumerate(found, start=1):
        sure = "" if mistake.confidence is None else mistake.confidence
        told = [sure] if _CONFIDENCE in titles else []
        cells = (rank, mistake.name, mistake.truth, mistake.said, *told, mistake.reason)
        yield dict(zip(titles, cells, strict=True))


def _confidence(mistake: ReviewerMistake) -> TableCell:
    sure = mistake.confidence
    return TableCell() if sure is None else TableCell(text=f"{sure:.0f}", number=sure)
