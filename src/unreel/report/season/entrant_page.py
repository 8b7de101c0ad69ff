"""Pages of single creators and reviewers: metrics per condition, clips and mistakes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np

from unreel.arena.answers.answer_table import ANSWERED_GENERATED, ANSWERED_REAL, REAL
from unreel.arena.boards.leaderboard_metrics import LeaderboardRow
from unreel.pages import player
from unreel.pages.html_page import build_html_page, render_template
from unreel.pages.player import PlayerSpec, PlayerTrackSpec
from unreel.report.boards.table_downloads import (
    FOLDER,
    build_latex_downloads,
    build_table_files,
    format_table_csv,
)
from unreel.report.boards.tables import (
    BoardTableCell,
    BoardTableColumn,
    ReportTable,
    TableFootnotes,
    build_count_cell,
    build_estimate_cell,
    build_report_table,
)
from unreel.report.season.clip_answers import (
    LABEL_WORDS,
    ReviewerAnswerSection,
    ReviewerByClipAnswers,
    iter_reviewer_answer_sections,
    shorten_reason,
)
from unreel.report.season.leaderboards import build_heat_map_cell_anchor, shorten_name_list
from unreel.report.season.page_data import (
    PAGES,
    REAL_TITLE,
    SeasonClipDetails,
    SeasonPageData,
    Side,
    get_entrant_page_name,
    get_metric_definition,
)

HOME = "../index.html"
MAX_LINES = 200
"""Maximum number of lines of a table on a page; the CSV file has all."""
STYLES = (player.STYLE, "unreel.report:report.css", "unreel.report.season:season.css")
_LAYOUT = ("unreel.report:layout.js", "unreel.report.season:season.js")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrantPageSection:
    """Section of an entrant's page: a heading, a sentence and a table."""

    id: str
    heading: str
    lead: str
    table: ReportTable


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrantPage:
    """Content of the page of one reviewer or creator of a season."""

    side: Side
    name: str
    badge: str
    summary: str
    tiles: tuple[tuple[str, str], ...]
    parts: tuple[EntrantPageSection, ...]
    sections: tuple[ReviewerAnswerSection, ...] = ()
    clips: Mapping[str, Any] = field(default_factory=dict)
    """Player configuration of each clip that may be shown, by the clip's index."""
    has_badge: bool = True

    @property
    def title(self) -> str:
        return REAL_TITLE if self.name == REAL else self.name

    @property
    def address(self) -> str:
        """Return the file name of the entrant's page, without its extension."""
        return get_entrant_page_name(self.side, self.name)


def build_entrant_page_files(season: SeasonPageData, page: EntrantPage) -> dict[str, str]:
    """Build an entrant's page, with the first table lines, and its full CSV files; texts by file name."""
    tables: dict[str, str] = {}
    parts = []
    for part in page.parts:
        first = truncate_board_table(part.table)
        tables |= build_table_files(first) | {
            f"{part.table.file}.csv": format_table_csv(part.table)
        }
        parts.append((part, first, len(part.table.lines)))
    body = render_template(
        "unreel.report.season:entrant.html", season=season, page=page, home=HOME, parts=parts
    )
    scripts = (player.SCRIPT, *_LAYOUT) if page.clips else _LAYOUT
    document = build_html_page(
        title=f"{page.title}, season {season.name}, unreel arena",
        body=body,
        styles=STYLES,
        scripts=scripts,
        data={**build_latex_downloads(tables), "season-clips": page.clips},
    )
    return {f"{PAGES}/{page.address}.html": document, **tables}


def truncate_board_table(table: ReportTable) -> ReportTable:
    """Return the table with only its first 200 rows."""
    return replace(table, lines=table.lines[:MAX_LINES])


def format_entrant_ranks(season: SeasonPageData, rows: Sequence[LeaderboardRow | None]) -> str:
    """Return the ranks of an entrant under each condition, as a sentence."""
    texts = []
    for board, row in zip(season.leaderboards, rows, strict=True):
        text = "absent" if row is None else "not ranked"
        if row is not None and row.rank is not None:
            text = f"rank {row.rank}{', leading' if row.first_class else ''}"
        elif row is not None and row.lacks:
            text = f"not ranked, missing {shorten_name_list(row.lacks)}"
        texts.append(f"{board.condition}: {text}")
    return "; ".join(texts) + "."


def build_entrant_metric_table(
    season: SeasonPageData, leaderboard_rows: Sequence[LeaderboardRow | None], *, file: str
) -> ReportTable:
    """Build a table of all metrics of an entrant, with one column for each condition."""
    names = dict.fromkeys(name for row in leaderboard_rows if row for name in row.figures)
    notes = TableFootnotes()
    rows = []
    for name in names:
        metric = get_metric_definition(name)
        cells = [BoardTableCell(text=metric.title, link=f"{HOME}#season-figure-{name}")]
        cells.append(BoardTableCell(text=metric.meaning))
        for row in leaderboard_rows:
            known = row.figures.get(name) if row else None
            cells.append(build_estimate_cell(known, notes, places=metric.places))
        rows.append(cells)
    columns = ("Figure", "Meaning", *(board.condition for board in season.leaderboards))
    return build_report_table(
        "Metrics with 95 % intervals", columns, rows, notes, n_text=2, file=file
    )


_MICRO = 1_000_000
_NOBODYS = "Real clips: calling them generated is an error."
_MAX_TRACKS = 12
"""Maximum number of answers below a clip in the player; the sections below have all."""


def build_creator_page(
    season: SeasonPageData, answers: Mapping[str, ReviewerByClipAnswers], name: str
) -> EntrantPage:
    """Build the page of a creator, of a control, or of all real clips of a season."""
    boards = [board.creators for board in season.leaderboards]
    leaderboards = [next((s for s in board if s.name == name), None) for board in boards]
    file = f"{FOLDER}/{get_entrant_page_name('creator', name)}"
    parts = []
    if season.shows_clips:
        rows = []
        for table in answers.values():
            names, scenes = table.answer_table.clips.names, table.answer_table.clips.scenes
            clips = table.clips_of(name)
            n_read = table.read[:, clips].sum(axis=0)
            n_caught = (table.answer_codes[:, clips] == ANSWERED_GENERATED).sum(axis=0)
            for i in np.lexsort((clips, -n_caught / np.maximum(n_read, 1))):
                clip = int(clips[i])
                info = season.clips.get(names[clip])
                link = f"#clip-{clip}" if info and info.player else ""
                cells = (
                    BoardTableCell(text=names[clip], link=link),
                    BoardTableCell(text=scenes[table.answer_table.clips.scene[clip]]),
                    BoardTableCell(text=table.answer_table.condition),
                    build_count_cell(int(n_caught[i])),
                    build_count_cell(int(n_read[i])),
                )
                rows.append(cells)
        heading = "Detected clips" if name != REAL else "Real clips called generated"
        table_ = build_report_table(
            f"Number of reviewers that called them generated: {_format_clip_owner(name)}",
            ("Clip", "Scene", "Condition", "Called generated by", "Answers"),
            rows,
            n_text=3,
            file=f"{file}-clips",
        )
        lead = "Clips that most reviewers called generated first, including baselines."
        parts.append(EntrantPageSection(id="clips", heading=heading, lead=lead, table=table_))
        parts += _iter_provenance_parts(season, answers, name, file=f"{file}-made")
    if any(leaderboards):
        metrics = build_entrant_metric_table(season, leaderboards, file=f"{file}-figures")
        lead = "Every metric under every condition."
        parts.append(EntrantPageSection(id="figures", heading="Figures", lead=lead, table=metrics))
    known = _list_creator_clips(season, answers, name)
    players = {
        f"clip-{index}": asdict(_add_answer_tracks(info.player, table, index))
        for table in [*answers.values()][:1]
        for index, _, info in known
        if info and info.player
    }
    tiles = [(f"{len(known):,}", "clips")]
    if creation_failures := season.creation_failures.get(name, {}):
        tiles.append((f"{len(creation_failures):,}", "never made"))
    if costs := [info.cost_usd for _, _, info in known if info and info.cost_usd is not None]:
        tiles.append((f"{sum(costs, Decimal(0)):,.2f}", f"USD for {len(costs):,} of them"))
    is_control = any(row is not None and row.kind == "control" for row in leaderboards)
    return EntrantPage(
        side="creator",
        name=name,
        badge="control" if is_control else "",
        summary=format_entrant_ranks(season, leaderboards) if any(leaderboards) else _NOBODYS,
        tiles=tuple(tiles),
        parts=tuple(parts),
        sections=tuple(iter_reviewer_answer_sections(season, answers, name))
        if season.shows_clips
        else (),
        clips=players,
        has_badge=any(leaderboards),
    )


def _list_creator_clips(
    season: SeasonPageData, answers: Mapping[str, ReviewerByClipAnswers], name: str
) -> list[tuple[int, str, SeasonClipDetails | None]]:
    """Return index, name and properties of the creator's clips, under the first condition with any."""
    for table in answers.values():
        indexes = table.clips_of(name)
        if len(indexes):
            names = table.answer_table.clips.names
            return [(int(i), names[i], season.clips.get(names[i])) for i in indexes]
    return []


def _add_answer_tracks(spec: PlayerSpec, answers: ReviewerByClipAnswers, clip: int) -> PlayerSpec:
    """Return the player data of a clip with a track for each reviewer's answer, 12 at most."""
    words = [
        (name, answers.answer(i, clip)) for i, name in enumerate(answers.answer_table.reviewers)
    ]
    lines = [
        PlayerTrackSpec(
            name=name, kind="answer", traces=(), note=f"says {word}", failed=word not in LABEL_WORDS
        )
        for name, word in words
        if word
    ]
    return replace(spec, tracks=(*spec.tracks, *lines[:_MAX_TRACKS]))


def _format_clip_owner(name: str) -> str:
    return f"clips of {name}" if name != REAL else "real clips"


def _iter_provenance_parts(
    season: SeasonPageData, answers: Mapping[str, ReviewerByClipAnswers], name: str, *, file: str
) -> Iterator[EntrantPageSection]:
    known = [(clip, info) for _, clip, info in _list_creator_clips(season, answers, name) if info]
    terms = list(dict.fromkeys(term for _, info in known for term, _ in info.facts))
    creation_failures = season.creation_failures.get(name, {})
    if not terms and not creation_failures:
        return
    rows = []
    for clip, info in known:
        facts = dict(info.facts)
        cost, took_us = info.cost_usd, info.took_us
        usd, seconds = BoardTableCell(), BoardTableCell()
        if cost is not None:
            usd = BoardTableCell(text=f"{cost:.4f}", number=float(cost))
        if took_us is not None:
            took_s = took_us / _MICRO
            seconds = BoardTableCell(text=f"{took_s:.1f}", number=took_s)
        texts = (clip, *(facts.get(term, "") for term in terms))
        rows.append(
            [*(BoardTableCell(text=text) for text in texts), usd, seconds, BoardTableCell()]
        )
    for clip, reason in creation_failures.items():
        texts = (clip, *("" for _ in (*terms, "usd", "seconds")), reason)
        rows.append([BoardTableCell(text=text) for text in texts])
    table = build_report_table(
        f"Provenance of {_format_clip_owner(name)}",
        (
            "Clip",
            *terms,
            "USD",
            "Seconds",
            BoardTableColumn(title="Never made, because", numbers=False),
        ),
        rows,
        n_text=1 + len(terms),
        file=file,
    )
    lead = "The creator's report about each clip; missing values are empty."
    yield EntrantPageSection(id="made", heading="Provenance", lead=lead, table=table)


def build_reviewer_page(
    season: SeasonPageData, answers: Mapping[str, ReviewerByClipAnswers], name: str
) -> EntrantPage:
    """Build a reviewer's page; `answers` maps condition ids to answers, in the order of the season."""
    leaderboards = [
        next((row for row in board.reviewers if row.name == name), None)
        for board in season.leaderboards
    ]
    present = [row for row in leaderboards if row]
    file = f"{FOLDER}/{get_entrant_page_name('reviewer', name)}"
    parts = []
    counts = np.zeros(3, dtype=np.int64)
    for condition_id, table in answers.items():
        if name not in table.answer_table.reviewers:
            continue
        index = table.answer_table.reviewers.index(name)
        is_sent, read, right = table.is_sent(index), table.read[index], table.right[index]
        counts += [right.sum(), (read & ~right).sum(), (is_sent & ~read).sum()]
        if season.shows_clips:
            id_ = f"{condition_id}-mistakes"
            heading = f"Worst mistakes first, {table.answer_table.condition}"
            mistakes = _build_mistake_table(season, table, condition_id, name, file=f"{file}-{id_}")
            lead = (
                "Wrong answers, starting with those that most others got right; then unreadable ones. "
                "A clip's name opens it."
            )
            parts.append(EntrantPageSection(id=id_, heading=heading, lead=lead, table=mistakes))
    creators = _build_creator_table(season, name, file=f"{file}-against")
    lead, heading = "Percentage of its readable answers that are generated.", "Against each creator"
    parts.append(EntrantPageSection(id="against", heading=heading, lead=lead, table=creators))
    metrics = build_entrant_metric_table(season, leaderboards, file=f"{file}-figures")
    lead = "Every metric under every condition."
    parts.append(EntrantPageSection(id="figures", heading="Figures", lead=lead, table=metrics))
    words = ("right", "wrong", "unreadable or failed")
    return EntrantPage(
        side="reviewer",
        name=name,
        badge="baseline" if present[0].kind == "floor" else "",
        summary=format_entrant_ranks(season, leaderboards),
        tiles=tuple((f"{n:,}", word) for n, word in zip(counts, words, strict=True)),
        parts=tuple(parts),
    )


def _build_mistake_table(
    season: SeasonPageData,
    answers: ReviewerByClipAnswers,
    condition_id: str,
    name: str,
    *,
    file: str,
) -> ReportTable:
    answer_table = answers.answer_table
    index = answer_table.reviewers.index(name)
    n_right, n_read = answers.n_right - answers.right[index], answers.n_read - answers.read[index]
    # The reviewer's reason for each clip; none if the reviewer never gave one.
    texts = (
        (clip, season.words.get((answer_table.condition, name, clip)))
        for clip in answer_table.clips.names
    )
    reasons = {clip: shorten_reason(text) for clip, text in texts if text}
    rows = []
    for rank, clip in enumerate(map(int, answers.worst(index)), start=1):
        creator, video = answers.creator(clip), answer_table.clips.names[clip]
        page = f"{get_entrant_page_name('creator', creator)}.html"
        info = season.clips.get(video)
        has_player = info is not None and info.player is not None
        anchor = f"clip-{clip}" if has_player else build_heat_map_cell_anchor(condition_id, name)
        truth = "real" if creator == REAL else f"generated by {creator}"
        if creator != REAL and answers.truth[clip] == ANSWERED_REAL:  # a control
            truth = f"real, {creator}"
        cells = [
            build_count_cell(rank),
            BoardTableCell(text=video, link=f"{page}#{anchor}"),
            BoardTableCell(text=truth),
            BoardTableCell(text=answers.answer(index, clip)),
            BoardTableCell(text=f"{n_right[clip]} of {n_read[clip]}", number=int(n_right[clip])),
        ]
        if reasons:
            cells.append(BoardTableCell(text=reasons.get(video, "")))
        rows.append(cells)
    columns = [BoardTableColumn(title="#")]
    columns += [BoardTableColumn(title=text, numbers=False) for text in ("Clip", "Truth", "Said")]
    columns.append(BoardTableColumn(title="Others right"))
    if reasons:
        columns.append(BoardTableColumn(title="In its words", numbers=False))
    caption = f"Answers of {name} that are not right, {answer_table.condition}"
    return build_report_table(caption, columns, rows, file=file)


def _build_creator_table(season: SeasonPageData, name: str, *, file: str) -> ReportTable:
    notes = TableFootnotes()
    rows = []
    for number, board in enumerate(season.leaderboards):
        anchor = build_heat_map_cell_anchor(f"c{number}", name)
        for cell in board.cells:
            if cell.reviewer == name:
                page = f"{get_entrant_page_name('creator', cell.creator)}.html"
                cells = (
                    BoardTableCell(text=cell.creator, link=f"{page}#{anchor}"),
                    BoardTableCell(text=board.condition),
                    build_estimate_cell(cell.caught, notes),
                    build_count_cell(cell.n_asked),
                    build_count_cell(cell.n_silent),
                )
                rows.append(cells)
    columns = ("Creator", "Condition", "Called generated, %", "Asked", "Unreadable")
    caption = f"{name} against each creator"
    return build_report_table(caption, columns, rows, notes, n_text=2, file=file)
