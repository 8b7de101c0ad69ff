"""`unreel report`: one folder that opens from disk and from any web server."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from unreel.core.errors import InvalidSettingError
from unreel.core.output_files import OutputDirectory
from unreel.engine.storage_access import StorageAccess
from unreel.evaluation.run_job import EvalRun
from unreel.pages import player
from unreel.pages.page import render, whole_page
from unreel.report.boards.bias_and_calibration import (
    build_bias_panel,
    build_calibration_panel,
    build_whole_frame_panel,
)
from unreel.report.boards.board import REVIEWERS, BoardPanel, ReportBoard, set_up_board
from unreel.report.boards.board_names import name_boards, name_contenders
from unreel.report.boards.coverage_and_cost import build_cost_panel, build_coverage_panel
from unreel.report.boards.downloads import FOLDER as TABLES
from unreel.report.boards.downloads import latex_block, name_tables, table_files
from unreel.report.boards.more import build_other_figures_panel
from unreel.report.boards.pairwise import build_differences_panel
from unreel.report.boards.parts import build_categories_panel, build_creators_panel, named_parts
from unreel.report.boards.ranking import build_difficulty_panel, leaderboard
from unreel.report.clips.browser import ClipBrowser, build_browser
from unreel.report.clips.clip_table import clips_csv
from unreel.report.clips.media_folder import Media, MediaFolder
from unreel.report.clips.pages import FOLDER as BOOK
from unreel.report.clips.pages import page_file
from unreel.report.entrants import ReportEntrant, read_run, shared_boards
from unreel.report.mistakes import reviewer_files

PAGE: Final = "index.html"
_OURS: Final = re.compile(r"\d+\.html|(board|reviewer)-\d+[a-z0-9-]*\.(csv|tex)")
"""Names of files that an earlier report may have left."""
CLIPS: Final = f"{TABLES}/clips.csv"
STYLES: Final = (player.STYLE, "unreel.report:report.css")
SCRIPTS: Final = (
    "unreel.report.boards:vendor/vega.min.js",
    "unreel.report.boards:vendor/vega-lite.min.js",
    "unreel.report.boards:vendor/vega-interpreter.js",
    "unreel.report.boards:charts.js",
    player.SCRIPT,
    "unreel.report.clips:clips.js",
    "unreel.report:layout.js",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportResult:
    """Counts and location of a report."""

    page: Path
    size_bytes: int
    """Of the page, without media."""
    n_boards: int
    n_entrants: int
    n_clips: int
    n_answers: int
    n_media: int
    missing_media: int


def write_report(
    runs: Sequence[EvalRun], out: Path, *, media: Media = "link", judge: str | None = None
) -> ReportResult:
    """Write the report of `runs` to the folder `out`. Sends nothing; an existing page is replaced.

    Args:
        runs: Runs of `unreel eval`; those over the same questions share a board.
        out: A folder, created if missing.
        media: `link` puts hard or symbolic links to clips into the folder, `copy` copies.
        judge: Model whose stored rulings score explanations: see `unreel score --judge`.
    """
    setting = "runs"
    if not runs:
        problem = "there is none to report on"
        raise InvalidSettingError(setting, problem, "Name at least one folder of `unreel eval`")
    for place, times in Counter(run.place.uri for run in runs).items():
        if times > 1:
            raise InvalidSettingError(setting, f"{place} is named twice", "Name each run once")
    entrants = [entrant for run in runs for entrant in read_run(run, judge=judge)]
    if judge is not None:
        _require_rulings(entrants, judge)
    named = name_boards(list(_iter_boards(entrants)))
    boards = [_add_board_panels(board, named[place + 1 :]) for place, board in enumerate(named)]
    names = name_contenders(boards)
    folder = OutputDirectory(out, published=True)
    media_folder = MediaFolder(out=folder, media=media, access=_get_storage_access(runs))
    pages: set[str] = set()

    def put(name: str, text: str) -> None:
        pages.add(folder.write(name, text.encode()).name)

    called = [names[i] for i in range(len(entrants))]
    browser = build_browser(entrants, called, media_folder, put=put)
    for left in {*folder.files(BOOK)} - pages:
        if _OURS.fullmatch(left):
            folder.remove(f"{BOOK}/{left}")
    tables = {CLIPS: clips_csv(browser)}
    for table in (t for board in boards for panel in board.panels for t in panel.all_tables):
        tables |= table_files(table)
    _replace_files(folder, tables | _build_reviewer_files(boards, names, browser))
    page = folder.write(PAGE, _render_report_page(boards, browser, tables).encode())
    return ReportResult(
        page=page,
        size_bytes=page.stat().st_size,
        n_boards=len(boards),
        n_entrants=len(entrants),
        n_clips=browser.n_clips,
        n_answers=browser.n_answers,
        n_media=len(media_folder.placed),
        missing_media=media_folder.n_missing,
    )


def _require_rulings(entrants: Sequence[ReportEntrant], judge: str) -> None:
    rows = [row for entrant in entrants for row in entrant.rows]
    if any(row.text_score is not None for row in rows):
        return
    if any(isinstance(getattr(row.outcome, "explanation", None), str) for row in rows):
        setting, problem = "judge", f"no ruling of {judge} is kept with these runs"
        remedy = f"Run `unreel score RUN --judge {judge}` first, or leave --judge out"
        raise InvalidSettingError(setting, problem, remedy)


def _build_reviewer_files(
    boards: Sequence[ReportBoard], names: Mapping[int, str], browser: ClipBrowser
) -> dict[str, str]:
    files: dict[str, str] = {}
    for board in boards:
        for contender in board.contenders:
            name = names[contender.place]
            files |= reviewer_files(board, contender, name=name, addresses=browser.addresses)
    return files


def _replace_files(folder: OutputDirectory, files: Mapping[str, str]) -> None:
    """Write `files`, and take away those of an earlier report that this one does not have."""
    for within in (REVIEWERS, TABLES):
        for name in folder.files(within):
            if _OURS.fullmatch(name) and f"{within}/{name}" not in files:
                folder.remove(f"{within}/{name}")
    for name, text in files.items():
        folder.write(name, text.encode())


def _iter_boards(entrants: Sequence[ReportEntrant]) -> Iterator[ReportBoard]:
    for number, shared in enumerate(shared_boards(entrants)):
        places = [_find_entrant_index(entrant, entrants) for entrant in shared]
        yield set_up_board(shared, places, number=number)


def _find_entrant_index(wanted: ReportEntrant, entrants: Sequence[ReportEntrant]) -> int:
    return next(place for place, entrant in enumerate(entrants) if entrant is wanted)


def _add_board_panels(board: ReportBoard, later: Sequence[ReportBoard]) -> ReportBoard:
    asked = (board.instrument, board.entrants[0].benchmark)
    beside = [each for each in later if (each.instrument, each.entrants[0].benchmark) == asked]
    panels = (panel for panel in _iter_board_panels(board, beside) if panel is not None)
    return replace(board, panels=tuple(map(name_tables, panels)))


def _iter_board_panels(
    board: ReportBoard, beside: Sequence[ReportBoard]
) -> Iterator[BoardPanel | None]:
    yield leaderboard(board)
    yield build_differences_panel(board, beside)
    yield build_difficulty_panel(board)
    yield build_creators_panel(board)
    yield build_categories_panel(board)
    yield from named_parts(board)
    yield build_bias_panel(board)
    yield build_calibration_panel(board)
    yield build_whole_frame_panel(board)
    yield build_other_figures_panel(board)
    yield build_coverage_panel(board)
    yield build_cost_panel(board)


def _get_storage_access(runs: Sequence[EvalRun]) -> StorageAccess:
    return runs[0].access


def _render_report_page(
    boards: Sequence[ReportBoard], browser: ClipBrowser, tables: Mapping[str, str]
) -> str:
    charts = {
        chart.id: chart.spec for board in boards for panel in board.panels for chart in panel.charts
    }
    contenders = [contender for board in boards for contender in board.contenders]
    kinds = list({contender.entrant.reviewer: contender.kind for contender in contenders}.values())
    tiles = [
        (f"{kinds.count('reviewer'):,}", "reviewers"),
        (f"{kinds.count('floor'):,}", "baselines"),
        (f"{browser.n_clips:,}", "clips"),
        (f"{browser.n_answers:,}", "answers"),
    ]
    heading = " and ".join(dict.fromkeys(board.benchmark for board in boards))
    body = render(
        "unreel.report:report.html",
        boards=boards,
        tiles=tiles,
        heading=heading,
        clips=CLIPS,
        pages=[page_file(number) for number in range(len(browser.index["pages"]))],
    )
    data: dict[str, object] = {"report-charts": charts, "report-index": browser.index}
    data |= latex_block(tables)
    data["report-clips-0"] = browser.packed
    return whole_page(
        title="unreel report",
        body=body,
        styles=STYLES,
        scripts=SCRIPTS,
        data=data,
        fetches=True,
    )
