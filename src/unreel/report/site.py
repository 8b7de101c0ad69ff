"""Report of runs (`unreel report`): a folder of pages that opens from disk or from a web server."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlencode

from unreel.core.clip import Generated
from unreel.core.errors import InvalidSettingError
from unreel.core.estimate import Estimate
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.core.table_formats import build_csv_table
from unreel.core.verdict import PreferenceVerdict, RealismVerdict, get_verdict_decision
from unreel.evaluation.run_job import EvalRun
from unreel.pages import player
from unreel.pages.html_page import build_html_page, render_template
from unreel.report.boards.board import (
    REVIEWERS,
    BoardContender,
    ReportBoard,
    add_distinct_board_names,
    build_contender_names,
    build_unfilled_report_board,
)
from unreel.report.boards.breakdown_panels import (
    build_bias_panel,
    build_calibration_panel,
    build_categories_panel,
    build_cost_panel,
    build_coverage_panel,
    build_creators_panel,
    build_other_metrics_panel,
    build_whole_frame_panel,
    iter_benchmark_part_panels,
)
from unreel.report.boards.entrant_metrics import get_entrant_metric
from unreel.report.boards.ranking_panels import (
    build_difficulty_panel,
    build_leaderboard_panel,
    build_pairwise_differences_panel,
)
from unreel.report.boards.table_downloads import (
    FOLDER,
    add_table_file_names,
    build_latex_downloads,
    build_table_files,
    format_clips_csv,
    replace_report_files,
)
from unreel.report.boards.table_downloads import FOLDER as TABLES
from unreel.report.boards.tables import (
    BoardTableCell,
    BoardTableColumn,
    ReportTable,
    TableFootnotes,
    build_count_cell,
    build_estimate_cell,
    build_report_table,
)
from unreel.report.clips.clip_browser import ClipBrowserData, build_clip_browser, grade_answer
from unreel.report.clips.clip_files import (
    FAILED,
    RIGHT,
    UNREADABLE,
    WRONG,
    Media,
    ReportMediaFolder,
    format_clip_page_path,
)
from unreel.report.clips.clip_files import FOLDER as BOOK
from unreel.report.entrants import (
    AnsweredQuestion,
    ReportEntrant,
    group_entrants_by_questions,
    read_report_entrants,
)

LONGEST_REASON = 300
"""Maximum number of letters of an explanation; the clip's entry in the report has all."""
_ORDER = (WRONG, UNREADABLE, FAILED)
WORDS = {WRONG: "wrong", UNREADABLE: "unreadable", FAILED: "failed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerMistake:
    """One answer of a reviewer that is wrong, unreadable or failed."""

    item: AnsweredQuestion
    status: int
    name: str
    truth: str
    answer: str
    confidence: float | None
    """Confidence of the answer, 0 to 100; `None` if not requested or not given."""
    reason: str

    @property
    def weight(self) -> tuple[int, bool, float, int, str]:
        """Return a mistake's sort key: failures last; wrong answers by confidence and score error, worst first."""
        confidence = -1.0 if self.confidence is None else self.confidence
        question = self.item
        decision = get_verdict_decision(question.outcome)
        is_score = isinstance(question.outcome, RealismVerdict) and decision is not None
        return (
            _ORDER.index(self.status),
            confidence < 0,
            -confidence,
            -(abs(int(decision) - question.rows[0].truth.score) if is_score else 0),
            self.name,
        )


def list_mistakes_worst_first(entrant: ReportEntrant) -> list[ReviewerMistake]:
    """Return every answer of `entrant` that is wrong, unreadable or failed, the worst first."""
    mistakes = []
    for item in entrant.items:
        status = grade_answer(item)
        if status == RIGHT:
            continue
        outcome = item.outcome
        decision = get_verdict_decision(outcome)
        explanation = getattr(outcome, "explanation", None) or getattr(outcome, "problem", None)
        reason = explanation if isinstance(explanation, str) else ""
        if isinstance(outcome, Failure):
            answer = f"failed: {outcome.reason.value}"
            reason = f"{outcome.detail}. {outcome.reason.remedy}"
        elif decision is None:
            answer, reason = "unreadable", item.stored.get("text") or ""
        elif isinstance(outcome, RealismVerdict):
            answer = f"{decision} of 5"
        else:
            answer = (
                f"{decision} is real" if isinstance(outcome, PreferenceVerdict) else str(decision)
            )
        reason = " ".join(reason.split())
        if len(reason) > LONGEST_REASON:
            reason = f"{reason[:LONGEST_REASON]}…"
        confidence = getattr(outcome, "confidence", None)
        mistakes.append(
            ReviewerMistake(
                item=item,
                status=status,
                name=" | ".join(subject.entry.name for subject in item.subjects),
                truth=_format_truth(item),
                answer=answer,
                confidence=confidence if isinstance(confidence, float) else None,
                reason=reason,
            )
        )
    return sorted(mistakes, key=lambda mistake: mistake.weight)


def _format_truth(question: AnsweredQuestion) -> str:
    outcome, truth = question.outcome, question.rows[0].truth
    if len(question.subjects) > 1:
        return f"{truth} is real"
    if isinstance(outcome, RealismVerdict) or hasattr(truth, "score"):
        return f"{truth.score} of 5"
    origin = question.subjects[0].entry.origin
    return f"generated by {origin.creator}" if isinstance(origin, Generated) else "real"


MAX_MISTAKES = 200
"""Maximum number of mistakes on a page; the CSV file has all."""
_CONFIDENCE = "Confidence, %"
HOME = "../index.html"
_REVIEWER_STYLES = ("unreel.report:report.css",)
_REVIEWER_SCRIPTS = ("unreel.report:layout.js",)


def build_reviewer_page_files(
    board: ReportBoard,
    contender: BoardContender,
    *,
    name: str,
    addresses: Mapping[tuple[str, str], Mapping[str, str]],
) -> dict[str, str]:
    """Build a reviewer's page and tables as texts by file name; `addresses` are links to the clips."""
    mistakes = list_mistakes_worst_first(contender.entrant)
    notes = TableFootnotes()
    rows = []
    defined = {metric.metric for metric in board.metrics}
    for metric in board.protocol_definition.figures:
        measured = get_entrant_metric(contender.entrant, metric.metric)
        if isinstance(measured, Estimate):
            cell = build_estimate_cell(measured, notes, places=metric.places)
            link = f"{HOME}#{board.id}-figure-{metric.metric}" if metric.metric in defined else ""
            title = BoardTableCell(text=metric.title, link=link)
            rows.append((title, BoardTableCell(text=metric.meaning), cell))
    metrics = build_report_table(
        "Metrics with 95 % intervals",
        ("Figure", "Meaning", "Value"),
        rows,
        notes,
        n_text=2,
        file=f"{FOLDER}/reviewer-{contender.place}",
    )
    file = f"{metrics.file}-mistakes"
    worst = _build_mistake_table(board, contender, mistakes, addresses, file=file)
    counts = Counter(map(grade_answer, contender.entrant.items))
    right = len(contender.entrant.items) - sum(counts.get(status, 0) for status in WORDS)
    counted = [(right, "right"), *((counts.get(status, 0), word) for status, word in WORDS.items())]
    if contender.entrant.n_pending:
        counted.append((contender.entrant.n_pending, "not asked yet"))
    body = render_template(
        "unreel.report:reviewer.html",
        board=board,
        contender=contender,
        name=name,
        home=HOME,
        own_clips=f"{HOME}#{urlencode({'reviewer': contender.place})}",
        tiles=[(f"{n:,}", word) for n, word in counted],
        figures=metrics,
        mistakes=worst,
        n_mistakes=len(mistakes),
    )
    titles = [column.title for column in worst.columns]
    records = []
    for rank, mistake in enumerate(mistakes, start=1):
        percent = "" if mistake.confidence is None else mistake.confidence
        confidence = [percent] if _CONFIDENCE in titles else []
        cells = (rank, mistake.name, mistake.truth, mistake.answer, *confidence, mistake.reason)
        records.append(dict(zip(titles, cells, strict=True)))
    all_mistakes = build_csv_table(titles, records)
    tables = (
        build_table_files(metrics) | build_table_files(worst) | {f"{worst.file}.csv": all_mistakes}
    )
    document = build_html_page(
        title=f"{name}, unreel report",
        body=body,
        styles=_REVIEWER_STYLES,
        scripts=_REVIEWER_SCRIPTS,
        data=build_latex_downloads(tables),
    )
    return {contender.page: document, **tables}


def _build_mistake_table(
    board: ReportBoard,
    contender: BoardContender,
    mistakes: Sequence[ReviewerMistake],
    addresses: Mapping[tuple[str, str], Mapping[str, str]],
    *,
    file: str,
) -> ReportTable:
    has_confidence = any(mistake.confidence is not None for mistake in mistakes)
    columns = [BoardTableColumn(title="#"), BoardTableColumn(title="Clip", numbers=False)]
    columns += [BoardTableColumn(title=title, numbers=False) for title in ("Truth", "Said")]
    columns += [BoardTableColumn(title=_CONFIDENCE)] if has_confidence else []
    columns.append(BoardTableColumn(title="In its words", numbers=False))
    rows = []
    for rank, mistake in enumerate(mistakes[:MAX_MISTAKES], start=1):
        fragment = urlencode(
            {
                **addresses[contender.entrant.benchmark, mistake.item.key],
                "reviewer": contender.place,
                "show": WORDS[mistake.status],
            }
        )
        cells = [
            build_count_cell(rank),
            BoardTableCell(text=mistake.name, link=f"{HOME}#{fragment}"),
            BoardTableCell(text=mistake.truth),
            BoardTableCell(text=mistake.answer),
        ]
        if has_confidence:
            value = mistake.confidence
            text = "" if value is None else f"{value:.0f}"
            cells.append(BoardTableCell(text=text, number=value))
        rows.append([*cells, BoardTableCell(text=mistake.reason)])
    caption = f"{board.name}: answers of {contender.name} that are not right"
    return build_report_table(caption, columns, rows, file=file)


PAGE = "index.html"
_OURS = re.compile(r"\d+\.html|(board|reviewer)-\d+[a-z0-9-]*\.(csv|tex)")
"""Pattern of file names that an earlier report may have left."""
CLIPS = f"{TABLES}/clips.csv"
STYLES = (player.STYLE, "unreel.report:report.css")
SCRIPTS = (
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
    """Write the report of `runs` to the folder `out`; an existing report is replaced.

    Runs over the same questions share a board. `judge` is the model of stored rulings.
    """
    setting = "runs"
    if not runs:
        raise InvalidSettingError(
            setting, "there is none to report on", "Name at least one folder of `unreel eval`"
        )
    for index, n in Counter(run.place.uri for run in runs).items():
        if n > 1:
            raise InvalidSettingError(setting, f"{index} is named twice", "Name each run once")
    entrants = [entrant for run in runs for entrant in read_report_entrants(run, judge=judge)]
    if judge is not None:
        _require_judge_rulings(entrants, judge)
    unnamed = []
    for number, group in enumerate(group_entrants_by_questions(entrants)):
        places = [
            next(place for place, other in enumerate(entrants) if other is entrant)
            for entrant in group
        ]
        unnamed.append(build_unfilled_report_board(group, places, number=number))
    empty = add_distinct_board_names(unnamed)
    boards = [_add_board_panels(board, empty[index + 1 :]) for index, board in enumerate(empty)]
    names = build_contender_names(boards)
    folder = OutputDirectory(out, published=True)
    media_folder = ReportMediaFolder(out=folder, media=media, access=runs[0].access)
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
    files = dict(tables)
    for board in boards:
        for contender in board.contenders:
            name = names[contender.place]
            files |= build_reviewer_page_files(
                board, contender, name=name, addresses=browser.addresses
            )
    replace_report_files(folder, files, (REVIEWERS, TABLES), _OURS)
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
        raise InvalidSettingError(
            "judge",
            f"no ruling of {judge} is kept with these runs",
            f"Run `unreel score RUN --judge {judge}` first, or leave --judge out",
        )


def _add_board_panels(board: ReportBoard, later_boards: Sequence[ReportBoard]) -> ReportBoard:
    key = (board.instrument, board.entrants[0].benchmark)
    others = [
        other for other in later_boards if (other.instrument, other.entrants[0].benchmark) == key
    ]
    panels = (
        build_leaderboard_panel(board),
        build_pairwise_differences_panel(board, others),
        build_difficulty_panel(board),
        build_creators_panel(board),
        build_categories_panel(board),
        *iter_benchmark_part_panels(board),
        build_bias_panel(board),
        build_calibration_panel(board),
        build_whole_frame_panel(board),
        build_other_metrics_panel(board),
        build_coverage_panel(board),
        build_cost_panel(board),
    )
    return replace(board, panels=tuple(add_table_file_names(p) for p in panels if p is not None))


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
        title="unreel report", body=body, styles=STYLES, scripts=SCRIPTS, data=data, fetches=True
    )
