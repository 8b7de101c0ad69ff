"""Page of one reviewer of a season: metrics, worst mistakes, and results for each creator."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from unreel.arena.answers.answer_table import REAL, SAID_REAL, SeasonAnswerTable
from unreel.arena.boards.leaderboard_types import LeaderboardRow
from unreel.report.boards.table_downloads import FOLDER
from unreel.report.boards.tables import (
    BoardTableCell,
    BoardTableColumn,
    BoardTableRow,
    ReportTable,
    TableFootnotes,
    build_count_cell,
    build_estimate_cell,
)
from unreel.report.season.clip_answers import ReviewerByClipAnswers, shorten_reason
from unreel.report.season.detection_heat_map import build_heat_map_cell_anchor
from unreel.report.season.entrant_page import (
    EntrantPage,
    EntrantPageSection,
    build_entrant_metric_table,
    format_entrant_ranks,
)
from unreel.report.season.page_data import SeasonPageData, get_entrant_page_name


def build_reviewer_page(
    season: SeasonPageData, answers: Mapping[str, ReviewerByClipAnswers], name: str
) -> EntrantPage:
    """Build a reviewer's page; `answers` maps condition ids to answers, in the order of the season."""
    standings = [_find_standing(board.reviewers, name) for board in season.standings]
    present = [standing for standing in standings if standing]
    file = f"{FOLDER}/{get_entrant_page_name('reviewer', name)}"
    parts = [*_iter_mistake_parts(season, answers, name, file=file)] if season.shows_clips else []
    creators = _build_creator_table(season, name, file=f"{file}-against")
    parts.append(
        EntrantPageSection(
            id="against",
            heading="Against each creator",
            lead="Percentage of its readable answers that are generated.",
            table=creators,
        )
    )
    metrics = build_entrant_metric_table(season, standings, file=f"{file}-figures")
    lead = "Every metric under every condition."
    parts.append(EntrantPageSection(id="figures", heading="Figures", lead=lead, table=metrics))
    return EntrantPage(
        side="reviewer",
        name=name,
        badge="baseline" if present[0].kind == "floor" else "",
        told=format_entrant_ranks(season, standings),
        tiles=tuple(_iter_summary_tiles(answers, name)),
        parts=tuple(parts),
    )


def _find_standing(standings: tuple[LeaderboardRow, ...], name: str) -> LeaderboardRow | None:
    return next((standing for standing in standings if standing.name == name), None)


def _iter_summary_tiles(
    answers: Mapping[str, ReviewerByClipAnswers], name: str
) -> Iterator[tuple[str, str]]:
    counts = np.zeros(3, dtype=np.int64)
    for table in answers.values():
        if name in table.play.reviewers:
            index = table.play.reviewers.index(name)
            asked, read, right = table.asked(index), table.read[index], table.right[index]
            counts += [right.sum(), (read & ~right).sum(), (asked & ~read).sum()]
    for count, word in zip(counts, ("right", "wrong", "unreadable or failed"), strict=True):
        yield f"{count:,}", word


def _iter_mistake_parts(
    season: SeasonPageData, answers: Mapping[str, ReviewerByClipAnswers], name: str, *, file: str
) -> Iterator[EntrantPageSection]:
    for sheet, table in answers.items():
        if name not in table.play.reviewers:
            continue
        lead = (
            "Wrong answers, starting with those that most others got right; then unreadable ones. A clip's name "
            "opens it."
        )
        yield EntrantPageSection(
            id=f"{sheet}-mistakes",
            heading=f"Worst mistakes first, {table.play.condition}",
            lead=lead,
            table=_build_mistake_table(season, table, sheet, name, file=f"{file}-{sheet}-mistakes"),
        )


def _build_mistake_table(
    season: SeasonPageData, table: ReviewerByClipAnswers, sheet: str, name: str, *, file: str
) -> ReportTable:
    play = table.play
    index = play.reviewers.index(name)
    n_right, n_read = table.n_right - table.right[index], table.n_read - table.read[index]
    worst = [int(clip) for clip in table.worst(index)]
    reasons = _index_reasons(season, play, name)
    lines = []
    for rank, clip in enumerate(worst, start=1):
        maker, video = table.maker(clip), play.lineup.clips[clip]
        page = f"{get_entrant_page_name('creator', maker)}.html"
        cells = (
            build_count_cell(rank),
            BoardTableCell(
                text=video,
                link=f"{page}#{_get_clip_anchor(season, video, clip, build_heat_map_cell_anchor(sheet, name))}",
            ),
            BoardTableCell(text=_format_truth(table, clip)),
            BoardTableCell(text=table.answer(index, clip)),
            BoardTableCell(text=f"{n_right[clip]} of {n_read[clip]}", number=int(n_right[clip])),
        )
        lines.append(
            BoardTableRow(cells=(*cells, BoardTableCell(text=reasons[video])) if reasons else cells)
        )
    columns = [BoardTableColumn(title="#"), BoardTableColumn(title="Clip", numbers=False)]
    columns += [BoardTableColumn(title=title, numbers=False) for title in ("Truth", "Said")]
    columns.append(BoardTableColumn(title="Others right"))
    if reasons:
        columns.append(BoardTableColumn(title="In its words", numbers=False))
    caption = f"Answers of {name} that are not right, {play.condition}"
    return ReportTable(caption=caption, columns=tuple(columns), lines=tuple(lines), file=file)


def _index_reasons(
    season: SeasonPageData, play: SeasonAnswerTable, name: str
) -> defaultdict[str, str]:
    """Return the reviewer's reason for each clip; empty if it never gave one."""
    reasons = ((clip, season.words.get((play.condition, name, clip))) for clip in play.lineup.clips)
    return defaultdict(str, {clip: shorten_reason(text) for clip, text in reasons if text})


def _format_truth(table: ReviewerByClipAnswers, clip: int) -> str:
    maker = table.maker(clip)
    if maker == REAL:
        return "real"
    is_control = table.truth[clip] == SAID_REAL
    return f"real, {maker}" if is_control else f"generated by {maker}"


def _get_clip_anchor(season: SeasonPageData, name: str, clip: int, cell: str) -> str:
    """Return the link target of a clip: the player if the clip may be shown, otherwise its cell."""
    known = season.clips.get(name)
    return f"clip-{clip}" if known and known.player else cell


def _build_creator_table(season: SeasonPageData, name: str, *, file: str) -> ReportTable:
    notes = TableFootnotes()
    lines = []
    for number, board in enumerate(season.standings):
        for cell in board.cells:
            if cell.reviewer == name:
                page = f"{get_entrant_page_name('creator', cell.creator)}.html#{build_heat_map_cell_anchor(f'c{number}', name)}"
                lines.append(
                    BoardTableRow(
                        cells=(
                            BoardTableCell(text=cell.creator, link=page),
                            BoardTableCell(text=board.condition),
                            build_estimate_cell(cell.caught, notes),
                            build_count_cell(cell.n_asked),
                            build_count_cell(cell.n_silent),
                        )
                    )
                )
    columns = [BoardTableColumn(title=title, numbers=False) for title in ("Creator", "Condition")]
    columns += [
        BoardTableColumn(title=title) for title in ("Called generated, %", "Asked", "Unreadable")
    ]
    return ReportTable(
        caption=f"{name} against each creator",
        columns=tuple(columns),
        lines=tuple(lines),
        notes=notes.listed(),
        file=file,
    )
