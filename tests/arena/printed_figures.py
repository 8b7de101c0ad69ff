"""The papers' tables through the arena's own ranking: every verdict figure that `studies/published/recompute.py` knows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal

from arena.counted_play import Counted, counted_play
from published.recompute import (
    COLUMNS,
    COUNT_TABLES,
    N_FAKE,
    N_REAL,
    REAL,
    SPLITS,
    AnswerCounts,
    TableLine,
    list_deeptrace_counts,
    read_count_tables,
    read_human_counts,
    read_table_lines,
    round_to_two_places,
)
from unreel.arena.answers.answer_table import SeasonAnswerTable
from unreel.arena.boards.leaderboard_metrics import (
    ReviewerCreatorCell,
    SeasonLeaderboard,
    rank_means,
)
from unreel.arena.boards.ranking import rank_season_entrants
from unreel.benchmarks.published.printed_tables import read_published_table
from unreel.core.estimate import Estimate, Measured
from unreel.protocols.paper_formulas import PERCENT, round_as_printed

NO_VERDICTS: Final = ("DTR overall", "DTR table 1 explained", "VRT human clips", "VRB pairs")
"""Checks of `studies/published/recompute.py` about other things than who said real or generated."""
_GENERATED: Final = "generated"
_HUMAN: Final = "Human"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputedFigure:
    """A printed figure, and the arena's."""

    check: str
    """Which check of `studies/published/recompute.py` it belongs to."""
    cell: str
    printed: Decimal
    arena: Decimal
    interval: tuple[Decimal, Decimal] | None = None
    """By clips that are taken as independent, since counts do not say which is which."""

    @property
    def agrees(self) -> bool:
        """Return whether the printed figure equals the one computed from its counts."""
        return self.printed == self.arena


def recalculate(*, seed: int = 0, resamples: int = 200) -> tuple[RecomputedFigure, ...]:
    """Every printed verdict figure that has counts, each through `rank_season_entrants`."""
    return (
        *_trace_accuracies(seed=seed, resamples=resamples),
        *_reviewer_cells(rank_season_entrants(table_2(), seed=seed, resamples=resamples)),
        *_means(read_table_lines("reality_reviewers"), "VRT table 2", better="high"),
        *_creator_cells(rank_season_entrants(table_3(), seed=seed, resamples=resamples)),
        *_means(read_table_lines("reality_creators"), "VRT table 3", better="low"),
        *_humans(seed=seed, resamples=resamples),
    )


def table_2() -> SeasonAnswerTable:
    """Video Reality Test's reviewers against the creators of table 2."""
    tables = read_count_tables()
    wanted = {REAL, *COLUMNS.values()}
    return counted_play(
        {
            name: {line: count for line, count in tables[number].items() if line in wanted}
            for name, number in COUNT_TABLES.items()
        },
        condition="Video Reality Test, table 2",
    )


def table_3() -> SeasonAnswerTable:
    """Video Reality Test's creators and settings before the reviewers of table 3."""
    tables = read_count_tables()
    lines = {line.name for line in read_table_lines("reality_creators")}
    return counted_play(
        {
            name: {
                line: count
                for line, count in tables[COUNT_TABLES[name]].items()
                if line in lines or line == REAL
            }
            for name in read_table_lines("reality_creators")[0].cells
        },
        condition="Video Reality Test, table 3",
    )


def _reviewer_cells(leaderboards: SeasonLeaderboard) -> Iterator[RecomputedFigure]:
    cells = _by_names(leaderboards)
    for line in read_table_lines("reality_reviewers"):
        for column, printed in line.cells.items():
            cell = cells.get((line.name, COLUMNS[column]))
            if cell is not None:
                yield _told("VRT table 2 cells", f"{line.name}, {column}", printed, cell.accuracy)


def _creator_cells(leaderboards: SeasonLeaderboard) -> Iterator[RecomputedFigure]:
    cells = _by_names(leaderboards)
    for line in read_table_lines("reality_creators"):
        for column, printed in line.cells.items():
            cell = cells.get((column, line.name))
            if cell is not None:
                yield _told("VRT table 3 cells", f"{line.name}, {column}", printed, cell.caught)


def _humans(*, seed: int, resamples: int) -> Iterator[RecomputedFigure]:
    rows = read_human_counts()
    made = {creator: fake for creator, _, fake, _ in rows}
    play = counted_play(
        {_HUMAN: {REAL: rows[0][1], **made}}, condition="Video Reality Test, table 16"
    )
    cells = _by_names(rank_season_entrants(play, seed=seed, resamples=resamples))
    for creator, _, _, printed in rows:
        balanced = cells[_HUMAN, creator].balanced
        yield _told("VRT human table", f"{_HUMAN}, {creator}", printed, balanced)


def _trace_accuracies(*, seed: int, resamples: int) -> Iterator[RecomputedFigure]:
    for split in SPLITS:
        play = counted_play(_trace_counts(split), condition=f"DeepTraceReward, {split}")
        standings = rank_season_entrants(play, seed=seed, resamples=resamples)
        figures = {one.name: one.figures for one in standings.reviewers}
        for row in read_published_table(f"deeptrace_{split}").rows:
            if row["model"] not in figures:
                continue
            found, cell = figures[row["model"]], f"{split}, {row['model']}"
            told = (
                ("accuracy", Decimal(row["accuracy"]), found["plain"]),
                ("fake accuracy", Decimal(row["fake_accuracy"]), found["caught"]),
                ("real accuracy", Decimal(row["real_accuracy"]), _rest(found["false-alarms"])),
            )
            for name, printed, value in told:
                yield _told("DTR accuracy", f"{cell}, {name}", printed, value)


def _trace_counts(split: str) -> Counted:
    return {
        row["model"]: {
            REAL: AnswerCounts(valid=N_REAL, said_fake=N_REAL - real_correct),
            _GENERATED: AnswerCounts(valid=N_FAKE[split], said_fake=fake_correct),
        }
        for row in read_published_table(f"deeptrace_{split}").rows
        for fake_correct, real_correct in list_deeptrace_counts(split, row)[:1]
    }


def _means(
    lines: Sequence[TableLine], table: str, *, better: Literal["high", "low"]
) -> Iterator[RecomputedFigure]:
    """Averages and ranks from the printed cells, as the board takes them; a line with audio bears its base's rank."""
    means = {line.name: line.mean for line in lines}
    bases = [line.name for line in lines if line.base == line.name]
    found = rank_means([float(means[name]) for name in bases], better=better)
    ranks: Mapping[str, int] = dict(zip(bases, found, strict=True))
    for line in lines:
        yield RecomputedFigure(
            check=f"{table} averages",
            cell=f"{line.name}, average",
            printed=line.average,
            arena=round_to_two_places(means[line.name]),
        )
        yield RecomputedFigure(
            check=f"{table} ranks",
            cell=f"{line.name}, rank",
            printed=Decimal(line.rank),
            arena=Decimal(ranks[line.base]),
        )


def _by_names(leaderboards: SeasonLeaderboard) -> Mapping[tuple[str, str], ReviewerCreatorCell]:
    return {(cell.reviewer, cell.creator): cell for cell in leaderboards.cells}


def _rest(share: Measured) -> Measured:
    if not isinstance(share, Estimate):
        return share
    value, low, high = (PERCENT - end for end in (share.value, share.high, share.low))
    return Estimate(value=value, low=low, high=high, n=share.n, n_clusters=share.n_clusters)


def _told(check: str, cell: str, printed: Decimal, value: Measured) -> RecomputedFigure:
    if not isinstance(value, Estimate):
        raise TypeError(value.why)  # counts are there, so a figure is
    figures = value.value, value.low, value.high
    if check == "DTR accuracy":
        arena, low, high = (round_as_printed(round(figure, 9)) for figure in figures)
    else:
        arena, low, high = (round_to_two_places(round(figure, 9)) for figure in figures)
    return RecomputedFigure(
        check=check, cell=cell, printed=printed, arena=arena, interval=(low, high)
    )
