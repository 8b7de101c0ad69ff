"""Attempts of a team: their number, the ranked attempt, and the correction for the best of several.

A team that submits ten seeds of one generator and shows the best gains by chance alone.
Therefore each team has one ranked row on each board: the attempt that the team declared before
any of its attempts was played, else its first accepted attempt, even if withdrawn. The other
attempts are rows without a rank. The best attempt is shown with the chance gain subtracted.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from unreel.arena.answers.answer_table import (
    SAID_GENERATED,
    SeasonAnswerTable,
    build_answer_grid,
    exclude_entrants,
    get_generated_clip_mask,
    get_real_clip_mask,
    get_wrong_answer_mask,
)
from unreel.arena.boards.leaderboard_types import LeaderboardRow, SeasonLeaderboard
from unreel.arena.boards.ranking import rank_season_entrants
from unreel.arena.submission.season_log import EntryState, SeasonLog, SeasonLogEvent
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.creators.contract import CreatorInput
from unreel.protocols.paper_formulas import PERCENT
from unreel.stats.paired_differences import FEWEST
from unreel.stats.resampling import RESAMPLES
from unreel.stats.row_sample import Array

_TAIL: Final = 0.025
Kind = Literal["creator", "reviewer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamAttempts:
    """All attempts of one team on one leaderboard, and the attempt that has a rank."""

    team: str
    kind: Kind
    submitted: int
    """Number of submitted attempts, including rejected ones."""
    entries: tuple[str, ...]
    """Titles of the accepted attempts, in order of acceptance, including withdrawn ones."""
    ranked: str
    """Title of the attempt that has a rank; "" if none was accepted."""
    seeds: tuple[int, ...] = ()
    """Seeds of the submitted attempts that have one."""

    @property
    def unranked(self) -> tuple[str, ...]:
        """Return the accepted entries of a team that are on the leaderboard without a rank."""
        return tuple(entry for entry in self.entries if entry != self.ranked)


def collect_team_attempts(history: SeasonLog) -> tuple[TeamAttempts, ...]:
    """Return the attempts of every team in a season's log, one result per team and leaderboard."""
    by_team: defaultdict[tuple[str, Kind], list[SeasonLogEvent]] = defaultdict(list)
    for event in history.events:
        if event.kind != "season":
            by_team[event.team, event.kind].append(event)
    return tuple(
        _build_team_attempts(team, kind, events) for (team, kind), events in sorted(by_team.items())
    )


def _build_team_attempts(team: str, kind: Kind, events: Sequence[SeasonLogEvent]) -> TeamAttempts:
    accepted = dict.fromkeys(e.entry for e in events if e.state is EntryState.ACCEPTED)
    played = [n for n, e in enumerate(events) if e.state is EntryState.PLAYED]
    in_time = events[: played[0]] if played else events
    declared = (e.entry for e in in_time if e.state is EntryState.ACCEPTED and e.declared)
    submitted = [e for e in events if e.state is EntryState.SUBMITTED]
    return TeamAttempts(
        team=team,
        kind=kind,
        submitted=len(submitted),
        entries=tuple(accepted),
        ranked=next(declared, next(iter(accepted), "")),
        seeds=tuple(e.seed for e in submitted if e.seed is not None),
    )


def rank_one_attempt_per_team(
    play: SeasonAnswerTable,
    tries: Sequence[TeamAttempts],
    *,
    seed: int,
    resamples: int = RESAMPLES,
    nuisances: Sequence[str] = (),
    retired: Collection[str] = (),
) -> SeasonLeaderboard:
    """Rank a season with one ranked row per team, as if its other attempts did not exist.

    Other attempts and `retired` creators follow without a rank and affect no other metric: ten
    entries of one generator do not give it ten times the weight, and later reviewers, who were not
    asked about retired creators, still have complete answers.
    """
    creators = _select_rows_of_entries(
        play.lineup.creators, _select_unranked_entries("creator", tries).union(retired)
    )
    reviewers = _select_rows_of_entries(play.reviewers, _select_unranked_entries("reviewer", tries))
    if not creators and not reviewers:
        return rank_season_entrants(play, seed=seed, resamples=resamples, nuisances=nuisances)
    selected = exclude_entrants(play, creators=creators, reviewers=reviewers)
    standings = rank_season_entrants(selected, seed=seed, resamples=resamples, nuisances=nuisances)
    full = rank_season_entrants(play, seed=seed, resamples=resamples, nuisances=nuisances)
    cells = (c for c in full.cells if c.creator in creators or c.reviewer in reviewers)
    return replace(
        standings,
        reviewers=_add_unranked_rows(standings.reviewers, full.reviewers, reviewers),
        creators=_add_unranked_rows(standings.creators, full.creators, creators),
        cells=(*standings.cells, *cells),
    )


def _add_unranked_rows(
    board: Sequence[LeaderboardRow], full: Sequence[LeaderboardRow], added: frozenset[str]
) -> tuple[LeaderboardRow, ...]:
    """Return ranked rows of `board`, rows of `full` named in `added` without rank, then others."""
    extra = (replace(s, rank=None, first_class=False) for s in full if s.name in added)
    ranked = [s for s in board if s.rank is not None]
    return (*ranked, *extra, *(s for s in board if s.rank is None))


def _select_rows_of_entries(board: Sequence[str], entries: frozenset[str]) -> frozenset[str]:
    return frozenset(
        row for row in board for entry in entries if is_leaderboard_row_of_entry(row, entry)
    )


def _select_unranked_entries(kind: Kind, tries: Sequence[TeamAttempts]) -> frozenset[str]:
    return frozenset(name for team in tries if team.kind == kind for name in team.unranked)


def is_leaderboard_row_of_entry(row: str, entry: str) -> bool:
    """Return whether a leaderboard row belongs to `entry`: its name is `entry` or `entry/SETTING`."""
    title, _, setting = row.rpartition("/")
    return row == entry or (title == entry and setting in set(CreatorInput))


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedBestAttempt:
    """Best attempt of a team, with its observed value and its value corrected for luck, in percent."""

    entry: str
    n_tries: int
    raw: float
    """Observed percentage: "generated" for a creator (low is better), right answers for a reviewer."""
    corrected: Measured
    """Observed percentage without the expected gain of choosing the best of several attempts."""


def correct_best_attempt(
    play: SeasonAnswerTable, entries: Sequence[str], *, kind: Kind, seed: int
) -> CorrectedBestAttempt | Unmeasured:
    """Return the best of a team's attempts, with its value corrected for choosing the best of several.

    `entries` are rows of one leaderboard, assumed equally good. The correction is the mean gain of the
    luckiest attempt over its own observed value, on bootstrap resamples of scenes. All attempts
    share the resamples, so difficulty that all attempts share does not count as luck.
    """
    sums = _count_hits_by_scene(play, entries, kind)
    if len(sums) < FEWEST:
        return Unmeasured(f"needs {FEWEST} scenes that all tries share, here are {len(sums)}")
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), size=RESAMPLES)
    observed = _compute_hit_rates(sums.sum(axis=0)[np.newaxis])[0]
    draws = _compute_hit_rates(np.einsum("rs,sek->rek", weights.astype(np.float64), sums))
    towards = -1.0 if kind == "creator" else 1.0
    luck = (towards * (draws - observed)).max(axis=1)
    luck = luck[np.isfinite(luck)]
    best = int(np.argmax(towards * observed))
    gains = (float(luck.mean()), *np.quantile(luck, (_TAIL, 1 - _TAIL)))
    value, *ends = (float(observed[best] - towards * gain) for gain in gains)
    value, *ends = (min(float(PERCENT), max(0.0, v)) for v in (value, *ends))
    corrected = Estimate(
        value=value,
        low=min(value, *ends),
        high=max(value, *ends),
        n=int(sums[:, best, 1].sum()),
        n_clusters=len(sums),
    )
    return CorrectedBestAttempt(
        entry=entries[best], n_tries=len(entries), raw=float(observed[best]), corrected=corrected
    )


def _compute_hit_rates(sums: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        rates: Array = PERCENT * sums[..., 0] / sums[..., 1]
    return rates


def _count_hits_by_scene(play: SeasonAnswerTable, entries: Sequence[str], kind: Kind) -> Array:
    """Count each attempt's hits and answers on each scene that all attempts share.

    The shape is scenes x attempts x 2. A hit is "generated" for a creator, a right answer for a
    reviewer.
    """
    lineup, grid = play.lineup, build_answer_grid(play)
    sums = np.zeros((len(lineup.scenes), len(entries), 2))
    ranked = [n for n, name in enumerate(play.reviewers) if name not in play.floors]
    for at, entry in enumerate(entries):
        if kind == "creator":
            lines, clips = ranked, lineup.creator == lineup.creators.index(entry)
            good = grid == SAID_GENERATED
        else:
            lines, clips = (
                [play.reviewers.index(entry)],
                get_generated_clip_mask(lineup) | get_real_clip_mask(lineup),
            )
            good = ~get_wrong_answer_mask(lineup, grid)
        read = (grid[lines] >= 0) & clips
        scene = lineup.scene[np.nonzero(read)[1]]
        for column, weights in enumerate((good[lines][read], np.ones(len(scene)))):
            sums[:, at, column] = np.bincount(scene, weights=weights, minlength=len(sums))
    return sums[(sums[:, :, 1] > 0).all(axis=1)]
