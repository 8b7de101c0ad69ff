"""Page of one creator of a season: its most detected clips, their generation, and all answers."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from decimal import Decimal
from typing import Final

import numpy as np

from unreel.arena.answers.answer_table import REAL, SAID_GENERATED
from unreel.arena.boards.leaderboard_types import LeaderboardRow
from unreel.pages.player import PlayerSpec, PlayerTrackSpec
from unreel.report.boards.table_downloads import FOLDER
from unreel.report.boards.tables import (
    BoardTableCell,
    BoardTableColumn,
    BoardTableRow,
    ReportTable,
    build_count_cell,
)
from unreel.report.season.clip_answers import (
    SIDES,
    ReviewerByClipAnswers,
    iter_reviewer_answer_sections,
)
from unreel.report.season.entrant_page import (
    EntrantPage,
    EntrantPageSection,
    build_entrant_metric_table,
    format_entrant_ranks,
)
from unreel.report.season.page_data import SeasonClipDetails, SeasonPageData, get_entrant_page_name

_MICRO: Final = 1_000_000
_NOBODYS: Final = "Real clips: calling them generated is an error."
_MOST_LINES: Final = 12
"""Maximum number of answers below a clip in the player; the sections below have all."""


def build_creator_page(
    season: SeasonPageData, answers: Mapping[str, ReviewerByClipAnswers], name: str
) -> EntrantPage:
    """Build the page of a creator, of a control, or of all real clips of a season."""
    boards = [board.creators for board in season.standings]
    standings = [next((s for s in board if s.name == name), None) for board in boards]
    file = f"{FOLDER}/{get_entrant_page_name('creator', name)}"
    parts = []
    if season.shows_clips:
        parts.append(_build_detection_part(season, answers, name, file=f"{file}-clips"))
        parts += _iter_provenance_parts(season, answers, name, file=f"{file}-made")
    if any(standings):
        metrics = build_entrant_metric_table(season, standings, file=f"{file}-figures")
        lead = "Every metric under every condition."
        parts.append(EntrantPageSection(id="figures", heading="Figures", lead=lead, table=metrics))
    known = _list_creator_clips(season, answers, name)
    players = {
        f"clip-{index}": asdict(_add_answer_tracks(info.player, table, index))
        for table in [*answers.values()][:1]
        for index, _, info in known
        if info and info.player
    }
    return EntrantPage(
        side="creator",
        name=name,
        badge="control" if _has_control_row(standings) else "",
        told=format_entrant_ranks(season, standings) if any(standings) else _NOBODYS,
        tiles=tuple(_iter_summary_tiles(season, known, name)),
        parts=tuple(parts),
        sections=tuple(iter_reviewer_answer_sections(season, answers, name))
        if season.shows_clips
        else (),
        clips=players,
        has_badge=any(standings),
    )


def _list_creator_clips(
    season: SeasonPageData, answers: Mapping[str, ReviewerByClipAnswers], name: str
) -> list[tuple[int, str, SeasonClipDetails | None]]:
    """Return index, name and properties of the creator's clips, under the first condition with any."""
    for table in answers.values():
        indexes = table.clips_of(name)
        if len(indexes):
            names = table.play.lineup.clips
            return [(int(i), names[i], season.clips.get(names[i])) for i in indexes]
    return []


def _add_answer_tracks(spec: PlayerSpec, answers: ReviewerByClipAnswers, clip: int) -> PlayerSpec:
    """Return the player data of a clip with a track for each reviewer's answer, 12 at most."""
    words = [(name, answers.answer(i, clip)) for i, name in enumerate(answers.play.reviewers)]
    lines = [
        PlayerTrackSpec(
            name=name, kind="answer", traces=(), note=f"says {word}", failed=word not in SIDES
        )
        for name, word in words
        if word
    ]
    return replace(spec, tracks=(*spec.tracks, *lines[:_MOST_LINES]))


def _format_clip_owner(name: str) -> str:
    return f"clips of {name}" if name != REAL else "real clips"


def _has_control_row(standings: list[LeaderboardRow | None]) -> bool:
    return any(standing is not None and standing.kind == "control" for standing in standings)


def _iter_summary_tiles(
    season: SeasonPageData, clips: list[tuple[int, str, SeasonClipDetails | None]], name: str
) -> Iterator[tuple[str, str]]:
    yield f"{len(clips):,}", "clips"
    unmade = season.unmade.get(name, {})
    if unmade:
        yield f"{len(unmade):,}", "never made"
    costs = [info.cost_usd for _, _, info in clips if info and info.cost_usd is not None]
    if costs:
        yield f"{sum(costs, Decimal(0)):,.2f}", f"USD for {len(costs):,} of them"


def _build_detection_part(
    season: SeasonPageData, answers: Mapping[str, ReviewerByClipAnswers], name: str, *, file: str
) -> EntrantPageSection:
    lines = []
    for table in answers.values():
        clips = table.clips_of(name)
        n_read = table.read[:, clips].sum(axis=0)
        n_caught = (table.said[:, clips] == SAID_GENERATED).sum(axis=0)
        for i in np.lexsort((clips, -n_caught / np.maximum(n_read, 1))):
            clip = int(clips[i])
            lines.append(_build_clip_line(season, table, clip, (int(n_caught[i]), int(n_read[i]))))
    heading = "Detected clips" if name != REAL else "Real clips called generated"
    columns = [
        BoardTableColumn(title=title, numbers=False) for title in ("Clip", "Scene", "Condition")
    ]
    columns += [BoardTableColumn(title="Called generated by"), BoardTableColumn(title="Answers")]
    table_ = ReportTable(
        caption=f"Number of reviewers that called them generated: {_format_clip_owner(name)}",
        columns=tuple(columns),
        lines=tuple(lines),
        file=file,
    )
    lead = "Clips that most reviewers called generated first, including baselines."
    return EntrantPageSection(id="clips", heading=heading, lead=lead, table=table_)


def _build_clip_line(
    season: SeasonPageData, table: ReviewerByClipAnswers, clip: int, counts: tuple[int, int]
) -> BoardTableRow:
    lineup = table.play.lineup
    name = lineup.clips[clip]
    info = season.clips.get(name)
    link = f"#clip-{clip}" if info and info.player else ""
    return BoardTableRow(
        cells=(
            BoardTableCell(text=name, link=link),
            BoardTableCell(text=lineup.scenes[lineup.scene[clip]]),
            BoardTableCell(text=table.play.condition),
            build_count_cell(counts[0]),
            build_count_cell(counts[1]),
        )
    )


def _iter_provenance_parts(
    season: SeasonPageData, answers: Mapping[str, ReviewerByClipAnswers], name: str, *, file: str
) -> Iterator[EntrantPageSection]:
    known = [(clip, info) for _, clip, info in _list_creator_clips(season, answers, name) if info]
    terms = list(dict.fromkeys(term for _, info in known for term, _ in info.facts))
    unmade = season.unmade.get(name, {})
    if not terms and not unmade:
        return
    columns = [BoardTableColumn(title=title, numbers=False) for title in ("Clip", *terms)]
    columns += [BoardTableColumn(title="USD"), BoardTableColumn(title="Seconds")]
    columns.append(BoardTableColumn(title="Never made, because", numbers=False))
    lines = []
    for clip, info in known:
        facts = dict(info.facts)
        cells = [
            BoardTableCell(text=clip),
            *(BoardTableCell(text=facts.get(term, "")) for term in terms),
        ]
        lines.append(
            BoardTableRow(
                cells=(
                    *cells,
                    _build_clip_cost_cell(info),
                    _build_duration_cell(info),
                    BoardTableCell(),
                )
            )
        )
    for clip, reason in unmade.items():
        empty = [BoardTableCell() for _ in (*terms, "usd", "seconds")]
        lines.append(
            BoardTableRow(cells=(BoardTableCell(text=clip), *empty, BoardTableCell(text=reason)))
        )
    caption = f"Provenance of {_format_clip_owner(name)}"
    table = ReportTable(caption=caption, columns=tuple(columns), lines=tuple(lines), file=file)
    lead = "The creator's report about each clip; missing values are empty."
    yield EntrantPageSection(id="made", heading="Provenance", lead=lead, table=table)


def _build_clip_cost_cell(info: SeasonClipDetails) -> BoardTableCell:
    cost = info.cost_usd
    return (
        BoardTableCell() if cost is None else BoardTableCell(text=f"{cost:.4f}", number=float(cost))
    )


def _build_duration_cell(info: SeasonClipDetails) -> BoardTableCell:
    took_us = info.took_us
    return (
        BoardTableCell()
        if took_us is None
        else BoardTableCell(text=f"{took_us / _MICRO:.1f}", number=took_us / _MICRO)
    )
