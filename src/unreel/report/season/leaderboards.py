"""Leaderboards of a season under one condition, with ranks and their uncertainty, and the heat map."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from unreel.arena.boards.ablations import EVERYBODY, AblationEffect, ReviewerBias
from unreel.arena.boards.leaderboard_metrics import (
    LeaderboardRow,
    ReviewerCreatorCell,
    SeasonLeaderboard,
)
from unreel.arena.boards.ranking import (
    is_leaderboard_row_of_entrant,
    iter_pair_answers_and_leaderboards,
    iter_season_leaderboards,
)
from unreel.arena.season.folder import SeasonFolder
from unreel.core.estimate import Estimate
from unreel.protocols.metric_definitions import MetricDefinition
from unreel.report.boards.board import BoardPanel
from unreel.report.boards.charts import BoardChart, ChartPoint, build_ranked_chart
from unreel.report.boards.table_downloads import FOLDER
from unreel.report.boards.tables import (
    BoardTableCell,
    BoardTableColumn,
    BoardTableRow,
    ReportTable,
    TableFootnotes,
    build_count_cell,
    build_estimate_cell,
    build_report_table,
)
from unreel.report.season.page_data import (
    PAGES,
    SeasonPageData,
    Side,
    get_entrant_page_name,
    get_leaderboard_side_rows,
    get_metric_definition,
    get_ranking_metric,
    list_leading_metrics,
    list_other_metrics,
)

_SMALLEST = 0.001
_NO_LEAD = "First minus second in percentage points, on the same clips."


def iter_ablation_panels(
    ablations: Sequence[AblationEffect], biases: Sequence[ReviewerBias]
) -> Iterator[BoardPanel]:
    """Yield a panel for each setting whose effect was measured, and one for the bias towards real."""
    by_knob: defaultdict[str, list[AblationEffect]] = defaultdict(list)
    for ablation in ablations:
        by_knob[ablation.knob].append(ablation)
    for number, (knob, effects) in enumerate(by_knob.items()):
        together = [effect for effect in effects if effect.reviewer == EVERYBODY]
        alone = [effect for effect in effects if effect.reviewer != EVERYBODY]
        yield BoardPanel(
            id=f"ablations-{number}",
            heading=knob.capitalize(),
            lead=f"{_NO_LEAD} p-values are corrected for all differences on this page.",
            tables=(_build_difference_table(together, f"{knob}, all reviewers except baselines"),),
            extras=(("Each reviewer", (_build_difference_table(alone, f"{knob}, each reviewer"),)),)
            if alone
            else (),
            is_open=True,
        )
    if biases:
        notes = TableFootnotes()
        rows = [
            (
                BoardTableCell(text=bias.reviewer),
                BoardTableCell(text=bias.condition),
                build_estimate_cell(bias.said_real, notes),
                build_estimate_cell(bias.criterion, notes, places=2),
                build_estimate_cell(bias.sensitivity, notes, places=2),
            )
            for bias in biases
        ]
        columns = ("Reviewer", "Condition", "Said real, %", "Criterion c", "Sensitivity d'")
        caption = "Bias towards real of each reviewer"
        yield BoardPanel(
            id="ablations-leaning",
            heading="Bias towards real",
            lead=(
                "Share of real answers with both sides weighted equally, and the criterion: above 0, the reviewer "
                "calls a clip real when in doubt; below 0, generated."
            ),
            tables=(build_report_table(caption, columns, rows, notes, n_text=2),),
        )


def _build_difference_table(effects: Sequence[AblationEffect], caption: str) -> ReportTable:
    notes = TableFootnotes()
    rows = []
    for effect in effects:
        texts = (effect.reviewer, effect.first, effect.second, effect.figure)
        p = effect.p_corrected
        p_cell = BoardTableCell()
        if p is not None:
            text = f"{p:.3f}" if p >= _SMALLEST else f"< {_SMALLEST}"
            p_cell = BoardTableCell(text=text, number=p)
        cells = [
            *(BoardTableCell(text=text) for text in texts),
            build_estimate_cell(effect.difference, notes),
            p_cell,
            build_count_cell(effect.n_pairs),
            build_count_cell(effect.n_left_out),
        ]
        rows.append(cells)
    titles = ("Reviewer", "First", "Second", "Figure", "First less second", "p, corrected")
    columns = (*titles, "Pairs", "Left out")
    return build_report_table(f"Paired differences: {caption}", columns, rows, notes, n_text=4)


def read_season_leaderboards(folder: SeasonFolder, *, resamples: int) -> SeasonPageData:
    """Read a season with its leaderboards only."""
    entrants = folder.require_played()
    if entrants.is_about_pairs:
        boards = tuple(
            SeasonLeaderboard(
                condition=answers.condition,
                reviewers=preferences.reviewers,
                creators=preferences.creators,
                cells=(),
                n_scenes=len(answers.scenes),
                n_resamples=0,
            )
            for answers, preferences in iter_pair_answers_and_leaderboards(folder)
        )
        return SeasonPageData(name=entrants.season, answer_tables=(), leaderboards=boards)
    answer_tables, leaderboards = zip(
        *iter_season_leaderboards(folder, resamples=resamples), strict=True
    )
    titles = entrants.shown(entrants.reviewers)
    reviewers = frozenset(titles[r.name] for r in entrants.reviewers if r.retired)
    gone = entrants.retired_creators
    rows = (*answer_tables[0].clips.creators, *answer_tables[0].clips.controls)
    return SeasonPageData(
        name=entrants.season,
        answer_tables=answer_tables,
        leaderboards=leaderboards,
        retired=reviewers.union(
            row for row in rows if any(is_leaderboard_row_of_entrant(row, title) for title in gone)
        ),
    )


_NAMED = 3
"""Maximum number of named opponents in a text; the others are counted."""
_MAX_PAIRS = 20
"""Maximum number of entrants that are compared on the page; the file has all."""
_COIN: Mapping[Side, str] = {
    "reviewer": " and that are above the coin, with an interval of balanced accuracy above 50 %",
    "creator": "",
}
_LEADS: Mapping[Side, str] = {
    "reviewer": "A baseline ignores the picture; a reviewer that does not beat it shows no skill.",
    "creator": "The least detected creator is first.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonConditionBoard:
    """Leaderboard of a season under one condition."""

    id: str
    leaderboards: SeasonLeaderboard
    retired: frozenset[str] = frozenset()
    shows_clips: bool = True


def build_season_board_panel(board: SeasonConditionBoard, side: Side) -> BoardPanel:
    """Build the panel of one leaderboard: chart, ranking table, and comparisons of each pair."""
    leaderboards = get_leaderboard_side_rows(board.leaderboards, side)
    metric = get_metric_definition(get_ranking_metric(side, leaderboards))
    entrants = [row for row in leaderboards if row.kind != "control"]
    controls = [row for row in leaderboards if row.kind == "control"]
    tables = [_build_ranking_table(board, side, entrants)]
    if controls:
        names = dict.fromkeys(name for row in controls for name in row.figures)
        metrics = [get_metric_definition(name) for name in names]
        caption = "Controls, without a rank: real clips, as filmed or changed"
        tables.append(_build_metric_table(caption, controls, "creator", metrics, head="Control"))
    points = [
        ChartPoint(who=s.name, measured=s.figures[metric.metric], kind=s.kind)
        for s in leaderboards
        if metric.metric in s.figures
    ]
    low, high = metric.range
    known = [point.measured for point in points if isinstance(point.measured, Estimate)]
    low = low if math.isfinite(low) else min((e.low for e in known), default=0.0)
    high = high if math.isfinite(high) else max((e.high for e in known), default=1.0)
    chart = BoardChart(
        id=f"{board.id}-{side}s",
        title=f"{metric.title} of each {side}",
        alt=_format_leader_summary(leaderboards, metric),
        spec=build_ranked_chart(
            points,
            title=f"{metric.title}, {metric.unit}" if metric.unit else metric.title,
            domain=(low, high),
            places=metric.places,
        ),
    )
    extras = []
    ranked = [row for row in entrants if row.rank is not None]
    compared = ranked[:_MAX_PAIRS]
    if any(row.above for row in compared):
        win_rate_rows = (
            (
                build_season_entrant_cell(row, side),
                *(build_percent_cell(row.above.get(column.name)) for column in compared),
            )
            for row in compared
        )
        first = f"the first {len(compared)}" if len(compared) < len(ranked) else "all"
        caption = (
            f"Share of resamples in which the {side} of a row is above that of a column: {first}"
        )
        columns = (side.capitalize(), *(row.name for row in compared))
        extras.append(
            ("Pairwise comparisons", (build_report_table(caption, columns, win_rate_rows),))
        )
    if others := [get_metric_definition(name) for name in list_other_metrics(side, entrants)]:
        table = _build_metric_table(f"Further metrics of {side}s", entrants, side, others)
        extras.append(("More metrics", (table,)))
    return BoardPanel(
        id=f"{board.id}-{side}s",
        heading=f"{side.capitalize()}s",
        lead=(
            f"Ranked by {metric.title.lower()}: {metric.meaning}. Ranks are of unrounded means; leading are all "
            f"entrants that the first does not significantly beat (paired differences by scene, Holm){_COIN[side]}. {_LEADS[side]}"
        ),
        charts=(chart,),
        tables=tuple(tables),
        extras=tuple(extras),
        is_open=True,
    )


def _build_metric_table(
    caption: str,
    rows: Sequence[LeaderboardRow],
    side: Side,
    metrics: Sequence[MetricDefinition],
    *,
    head: str = "",
) -> ReportTable:
    notes = TableFootnotes()
    lines = [
        BoardTableRow(
            cells=(build_season_entrant_cell(row, side), *_build_metric_cells(row, metrics, notes)),
            kind=row.kind,
        )
        for row in rows
    ]
    return build_report_table(caption, (head or side.capitalize(), *metrics), lines, notes)


def build_season_entrant_cell(
    row: LeaderboardRow, side: Side, *, retired: Collection[str] = ()
) -> BoardTableCell:
    """Return a cell with the entrant's name, a badge for its kind and class, and a link to its page."""
    badge = "removed" if row.name in retired else ""
    badge = badge or {"floor": "baseline", "control": "control"}.get(row.kind, "")
    if not badge and row.first_class and row.rank is not None:
        badge = "leading"
    detail = f"not ranked: missing {shorten_name_list(row.lacks)}" if row.lacks else ""
    link = f"{PAGES}/{get_entrant_page_name(side, row.name)}.html"
    return BoardTableCell(text=row.name, badge=badge, link=link, detail=detail)


def _build_ranking_table(
    board: SeasonConditionBoard, side: Side, rows: Sequence[LeaderboardRow]
) -> ReportTable:
    first = get_metric_definition(get_ranking_metric(side, rows))
    metrics = [get_metric_definition(metric) for metric in list_leading_metrics(side, rows)]
    notes = TableFootnotes()
    lines = []
    for index, row in enumerate(rows):
        rank, above = BoardTableCell(), BoardTableCell()
        if row.rank is not None:
            rank = build_count_cell(row.rank)
            ranked_below = [below for below in rows[index + 1 :] if below.rank is not None]
            if ranked_below:
                above = build_percent_cell(row.above.get(ranked_below[0].name))
        cells = (
            rank,
            build_season_entrant_cell(row, side, retired=board.retired),
            *_build_metric_cells(row, metrics, notes),
            above,
        )
        lines.append(BoardTableRow(cells=cells, kind=row.kind))
    name = BoardTableColumn(title=side.capitalize(), numbers=False)
    return build_report_table(
        f"{side.capitalize()}s by {first.title.lower()}, {board.leaderboards.condition}",
        ("#", name, *metrics, "Above the next"),
        lines,
        notes,
        n_text=0,
    )


def _build_metric_cells(
    row: LeaderboardRow, metrics: Sequence[MetricDefinition], notes: TableFootnotes
) -> list[BoardTableCell]:
    return [
        build_estimate_cell(row.figures.get(metric.metric), notes, places=metric.places)
        for metric in metrics
    ]


def build_percent_cell(fraction: float | None) -> BoardTableCell:
    """Return a table cell with a fraction of bootstrap resamples in percent; empty for `None`."""
    if fraction is None:
        return BoardTableCell()
    return BoardTableCell(text=f"{100 * fraction:.0f} %", number=round(100 * fraction, 2))


def _format_leader_summary(rows: Sequence[LeaderboardRow], metric: MetricDefinition) -> str:
    """Return sentences about the first entrant, its lead over the second, and the number leading."""
    ranked = [row for row in rows if row.rank is not None]
    if not ranked:
        return "No entrant has a rank."
    first, *rest = ranked
    measured = first.figures.get(metric.metric)
    cell = build_estimate_cell(measured, TableFootnotes(), places=metric.places)
    value = f"{cell.text} ({cell.detail})" if cell.text else "no value"
    sentences = [f"First: {first.name} with {value}."]
    if rest and rest[0].name in first.above:
        percent = 100 * first.above[rest[0].name]
        sentences.append(f"It is above {rest[0].name} in {percent:.0f} % of resamples.")
    n_leading = sum(row.first_class for row in ranked)
    if len(ranked) > 1:
        sentences.append(f"Leading: {n_leading} of {len(ranked)} ranked entrants.")
    return " ".join(sentences)


def shorten_name_list(names: Sequence[str]) -> str:
    """Return the first three names and the number of further names."""
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + rest


SHADES = 10
_ROOMY = 12
"""Maximum number of columns with intervals below the rates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMapCell:
    """Cell of the heat map: the detection rate of one reviewer on one creator."""

    shade: int | None
    """Colour level, 0 to `SHADES`; `None` if nothing was measured."""
    text: str
    ends: str
    """Ends of the confidence interval, as text."""
    n: int
    link: str
    creator: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionRateChart:
    """Heat map of detection rates, and the same data as a table for files."""

    id: str
    heads: tuple[BoardTableCell, ...]
    rows: tuple[tuple[BoardTableCell, tuple[HeatMapCell, ...]], ...]
    """Name of each reviewer, and its cells, one for each creator."""
    table: ReportTable
    is_roomy: bool


def build_detection_heat_map(board: SeasonConditionBoard) -> DetectionRateChart | None:
    """Return the heat map of detection rates; `None` if no reviewer answered about any creator."""
    leaderboards = board.leaderboards
    by_pair = {(cell.reviewer, cell.creator): cell for cell in leaderboards.cells}
    if not by_pair:
        return None
    answered = {creator for _, creator in by_pair}
    columns = [c for c in leaderboards.creators if c.name in answered]
    rows = []
    for reviewer in leaderboards.reviewers:
        squares = [
            _build_heat_map_cell(board, reviewer, c, by_pair.get((reviewer.name, c.name)))
            for c in columns
        ]
        head = replace(build_season_entrant_cell(reviewer, "reviewer"), detail="")
        rows.append((head, tuple(squares)))
    notes = TableFootnotes()
    lines = []
    for reviewer in leaderboards.reviewers:
        cells = [by_pair.get((reviewer.name, creator.name)) for creator in columns]
        rates = [build_estimate_cell(cell.caught if cell else None, notes) for cell in cells]
        name = BoardTableCell(text=reviewer.name)
        lines.append(BoardTableRow(cells=(name, *rates), kind=reviewer.kind))
    table = build_report_table(
        "Percent of each creator's clips that each reviewer called generated, "
        f"{board.leaderboards.condition}",
        ("Reviewer", *(creator.name for creator in columns)),
        lines,
        notes,
        file=f"{FOLDER}/{board.id}-matrix",
    )
    return DetectionRateChart(
        id=f"{board.id}-matrix",
        heads=tuple(replace(build_season_entrant_cell(c, "creator"), detail="") for c in columns),
        rows=tuple(rows),
        table=table,
        is_roomy=len(columns) <= _ROOMY,
    )


def build_heat_map_cell_anchor(condition_id: str, reviewer: str) -> str:
    """Return the anchor on a creator's page of the answers of one reviewer under one condition."""
    return f"{condition_id}-{get_entrant_page_name('reviewer', reviewer)}"


def _build_heat_map_cell(
    board: SeasonConditionBoard,
    reviewer: LeaderboardRow,
    creator: LeaderboardRow,
    met: ReviewerCreatorCell | None,
) -> HeatMapCell:
    page = f"{PAGES}/{get_entrant_page_name('creator', creator.name)}.html"
    link = (
        f"{page}#{build_heat_map_cell_anchor(board.id, reviewer.name)}"
        if board.shows_clips
        else page
    )
    caught = met.caught if met else None
    if not isinstance(caught, Estimate):
        return HeatMapCell(
            shade=None, text="", ends="", n=0, link=link if met else "", creator=creator.name
        )
    return HeatMapCell(
        shade=round(caught.value / 100 * SHADES),
        text=f"{caught.value:.0f}",
        ends=f"{caught.low:.0f} to {caught.high:.0f}",
        n=caught.n,
        link=link,
        creator=creator.name,
    )
