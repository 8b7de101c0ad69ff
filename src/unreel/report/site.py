"""Report of runs (`unreel report`): a folder of pages that opens from disk or from a web server."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from unreel.core.errors import InvalidSettingError
from unreel.core.output_files import OutputDirectory
from unreel.engine.storage_access import ClipAccessSettings
from unreel.evaluation.run_job import EvalRun
from unreel.pages import player
from unreel.pages.html_page import build_html_page, render_template
from unreel.report.boards.bias_and_calibration import (
    build_bias_panel,
    build_calibration_panel,
    build_whole_frame_panel,
)
from unreel.report.boards.board import (
    REVIEWERS,
    BoardPanel,
    ReportBoard,
    add_distinct_board_names,
    build_contender_names,
    build_unfilled_report_board,
)
from unreel.report.boards.breakdown_panels import (
    build_categories_panel,
    build_creators_panel,
    build_other_metrics_panel,
    iter_benchmark_part_panels,
)
from unreel.report.boards.coverage_and_cost import build_cost_panel, build_coverage_panel
from unreel.report.boards.differences_panel import build_pairwise_differences_panel
from unreel.report.boards.ranking_panels import build_difficulty_panel, build_leaderboard_panel
from unreel.report.boards.table_downloads import FOLDER as TABLES
from unreel.report.boards.table_downloads import (
    add_table_file_names,
    build_latex_downloads,
    build_table_files,
    format_clips_csv,
    replace_report_files,
)
from unreel.report.clips.clip_browser import ClipBrowserData, build_clip_browser
from unreel.report.clips.clip_files import FOLDER as BOOK
from unreel.report.clips.clip_files import Media, ReportMediaFolder, format_clip_page_path
from unreel.report.entrants import ReportEntrant, group_entrants_by_questions, read_report_entrants
from unreel.report.reviewer_page import build_reviewer_page_files

PAGE: Final = "index.html"
_OURS: Final = re.compile(r"\d+\.html|(board|reviewer)-\d+[a-z0-9-]*\.(csv|tex)")
"""Pattern of file names that an earlier report may have left."""
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
class WrittenReport:
    """Result of writing a report: the page, its size, and counts."""

    page: Path
    size_bytes: int
    """Size of the page, without media."""
    n_boards: int
    n_entrants: int
    n_clips: int
    n_answers: int
    n_media: int
    missing_media: int


def write_report(
    runs: Sequence[EvalRun], out: Path, *, media: Media = "link", judge: str | None = None
) -> WrittenReport:
    """Write the report of `runs` to the folder `out`; an existing report is replaced. Send nothing.

    Args:
        runs: Runs of `unreel eval`; those over the same questions share a board.
        out: Folder, created if missing.
        media: `link` puts hard or symbolic links to clips into the folder, `copy` copies the clips.
        judge: Model whose stored rulings score explanations: see `unreel score --judge`.
    """
    setting = "runs"
    if not runs:
        problem = "there is none to report on"
        raise InvalidSettingError(setting, problem, "Name at least one folder of `unreel eval`")
    for index, n in Counter(run.place.uri for run in runs).items():
        if n > 1:
            raise InvalidSettingError(setting, f"{index} is named twice", "Name each run once")
    entrants = [entrant for run in runs for entrant in read_report_entrants(run, judge=judge)]
    if judge is not None:
        _require_judge_rulings(entrants, judge)
    empty = add_distinct_board_names(list(_iter_report_boards(entrants)))
    boards = [_add_board_panels(board, empty[index + 1 :]) for index, board in enumerate(empty)]
    names = build_contender_names(boards)
    folder = OutputDirectory(out, published=True)
    media_folder = ReportMediaFolder(out=folder, media=media, access=_get_storage_access(runs))
    pages: set[str] = set()

    def put(name: str, text: str) -> None:
        pages.add(folder.write(name, text.encode()).name)

    entrant_names = [names[i] for i in range(len(entrants))]
    browser = build_clip_browser(entrants, entrant_names, media_folder, put=put)
    for old_page in {*folder.files(BOOK)} - pages:
        if _OURS.fullmatch(old_page):
            folder.remove(f"{BOOK}/{old_page}")
    tables = {CLIPS: format_clips_csv(browser)}
    for table in (t for board in boards for panel in board.panels for t in panel.all_tables):
        tables |= build_table_files(table)
    replace_report_files(
        folder, tables | _build_reviewer_files(boards, names, browser), (REVIEWERS, TABLES), _OURS
    )
    page = folder.write(PAGE, _render_report_page(boards, browser, tables).encode())
    return WrittenReport(
        page=page,
        size_bytes=page.stat().st_size,
        n_boards=len(boards),
        n_entrants=len(entrants),
        n_clips=browser.n_clips,
        n_answers=browser.n_answers,
        n_media=len(media_folder.placed),
        missing_media=media_folder.n_missing,
    )


def _require_judge_rulings(entrants: Sequence[ReportEntrant], judge: str) -> None:
    rows = [row for entrant in entrants for row in entrant.rows]
    if any(row.text_score is not None for row in rows):
        return
    if any(isinstance(getattr(row.outcome, "explanation", None), str) for row in rows):
        setting, problem = "judge", f"no ruling of {judge} is kept with these runs"
        remedy = f"Run `unreel score RUN --judge {judge}` first, or leave --judge out"
        raise InvalidSettingError(setting, problem, remedy)


def _build_reviewer_files(
    boards: Sequence[ReportBoard], names: Mapping[int, str], browser: ClipBrowserData
) -> dict[str, str]:
    files: dict[str, str] = {}
    for board in boards:
        for contender in board.contenders:
            name = names[contender.place]
            files |= build_reviewer_page_files(
                board, contender, name=name, addresses=browser.addresses
            )
    return files


def _iter_report_boards(entrants: Sequence[ReportEntrant]) -> Iterator[ReportBoard]:
    for number, group in enumerate(group_entrants_by_questions(entrants)):
        indexes = [_find_entrant_index(entrant, entrants) for entrant in group]
        yield build_unfilled_report_board(group, indexes, number=number)


def _find_entrant_index(wanted: ReportEntrant, entrants: Sequence[ReportEntrant]) -> int:
    return next(index for index, other in enumerate(entrants) if other is wanted)


def _add_board_panels(board: ReportBoard, later: Sequence[ReportBoard]) -> ReportBoard:
    key = (board.instrument, board.entrants[0].benchmark)
    others = [other for other in later if (other.instrument, other.entrants[0].benchmark) == key]
    panels = (panel for panel in _iter_board_panels(board, others) if panel is not None)
    return replace(board, panels=tuple(map(add_table_file_names, panels)))


def _iter_board_panels(
    board: ReportBoard, later: Sequence[ReportBoard]
) -> Iterator[BoardPanel | None]:
    yield build_leaderboard_panel(board)
    yield build_pairwise_differences_panel(board, later)
    yield build_difficulty_panel(board)
    yield build_creators_panel(board)
    yield build_categories_panel(board)
    yield from iter_benchmark_part_panels(board)
    yield build_bias_panel(board)
    yield build_calibration_panel(board)
    yield build_whole_frame_panel(board)
    yield build_other_metrics_panel(board)
    yield build_coverage_panel(board)
    yield build_cost_panel(board)


def _get_storage_access(runs: Sequence[EvalRun]) -> ClipAccessSettings:
    return runs[0].access


def _render_report_page(
    boards: Sequence[ReportBoard], browser: ClipBrowserData, tables: Mapping[str, str]
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
    body = render_template(
        "unreel.report:report.html",
        boards=boards,
        tiles=tiles,
        heading=heading,
        clips=CLIPS,
        pages=[format_clip_page_path(number) for number in range(len(browser.index["pages"]))],
    )
    data: dict[str, object] = {"report-charts": charts, "report-index": browser.index}
    data |= build_latex_downloads(tables)
    data["report-clips-0"] = browser.packed
    return build_html_page(
        title="unreel report",
        body=body,
        styles=STYLES,
        scripts=SCRIPTS,
        data=data,
        fetches=True,
    )
