"""Both leaderboards of an answer table: reviewers ranked by accuracy, creators by fakeness.

Fakeness is the rate at which reviewers call the clips of a creator generated.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from unreel.arena.answers.answer_table import NOBODY, SAID_GENERATED, SILENT, SeasonAnswerTable
from unreel.arena.answers.resampled_counts import ResampledAnswerTable
from unreel.arena.boards.entrant_comparison import (
    compare_entrants,
    find_leading_entrants,
    rank_means,
)
from unreel.arena.boards.leaderboard_metrics import REAL_CLIPS
from unreel.arena.boards.leaderboard_types import (
    LeaderboardRow,
    ReviewerCreatorCell,
    SeasonLeaderboard,
)
from unreel.arena.boards.rates import LeaderboardRates, measure_leaderboard_rates
from unreel.core.errors import UnknownNameError
from unreel.core.estimate import Measured, Unmeasured
from unreel.stats.resampling import RESAMPLES
from unreel.stats.row_sample import Array, BoolArray, IntArray
from unreel.stats.skill_likelihood import SkillAnswerColumns, SkillTermLayout
from unreel.stats.skill_model import (
    SkillTermEstimates,
    estimate_skill_intervals,
    standardise_columns,
)


@dataclass(frozen=True, slots=True, eq=False)
class SkillEstimates:
    """Estimates of the skill model, in the order of the answer table's reviewers and creators."""

    reviewers: Sequence[Mapping[str, Measured]]
    creators: Sequence[Mapping[str, Measured]]
    sway: Mapping[str, Measured]


def fit_skill_model(play: SeasonAnswerTable, *, nuisances: Sequence[str] = ()) -> SkillEstimates:
    """Fit a model of reviewers' ability and creators' realism to all readable answers.

    Answers about controls are excluded. `nuisances` names clip properties to correct for.

    Raises:
        UnknownNameError: The clips have no property of a name in `nuisances`.
    """
    lineup = play.lineup
    columns = [_require_nuisance_index(name, lineup.nuisances) for name in nuisances]
    of_clips = lineup.nuisance[:, columns].astype(np.float64)
    rows = np.flatnonzero((play.said != SILENT) & (lineup.control[play.clip] == NOBODY))
    clip = play.clip[rows]
    scaled = standardise_columns(of_clips, np.flatnonzero(np.bincount(clip)))
    alike: BoolArray = np.all(scaled == 0, axis=0)
    shape = SkillTermLayout(len(play.reviewers), len(lineup.creators), int((~alike).sum()))
    skills = estimate_skill_intervals(
        SkillAnswerColumns(
            reviewer=play.reviewer[rows].astype(np.int64),
            creator=lineup.creator[clip].astype(np.int64),
            scene=lineup.scene[clip].astype(np.int64),
            generated=play.said[rows] == SAID_GENERATED,
            nuisance=scaled[:, ~alike][clip],
        ),
        shape,
    )
    return _build_skill_estimates(skills, nuisances, alike)


def _build_skill_estimates(
    skills: SkillTermEstimates, nuisances: Sequence[str], alike: BoolArray
) -> SkillEstimates:
    moved = iter(skills.sway)
    nothing = Unmeasured("all clips have the same value, or it is unknown")
    pairs = zip(skills.ability, skills.bias, strict=True)
    return SkillEstimates(
        reviewers=[{"ability": ability, "bias": bias} for ability, bias in pairs],
        creators=[{"realism": realism} for realism in skills.realism],
        sway={
            name: nothing if flat else next(moved)
            for name, flat in zip(nuisances, alike, strict=True)
        },
    )


def _require_nuisance_index(name: str, known: Sequence[str]) -> int:
    if name not in known:
        kind = "nuisance"
        raise UnknownNameError(kind, name, list(known))
    return known.index(name)


COIN: Final = "coin"
"""Name of the random baseline."""


def rank_season_entrants(
    play: SeasonAnswerTable, *, seed: int, resamples: int = RESAMPLES, nuisances: Sequence[str] = ()
) -> SeasonLeaderboard:
    """Rank the reviewers and the creators of a season by the answers in `play`.

    Only reviewers of the panel have ranks, and only they affect the ranks of creators. A reviewer is
    in the panel if it was asked about every real and every generated clip, and gave readable answers
    to half of the clips of each source. Baselines and other reviewers are measured, but affect no
    other row. The skill model is fitted to all answers, with the properties named in `nuisances`.
    """
    tally = ResampledAnswerTable.of(play, seed=seed, resamples=resamples)
    met = tally.met()
    complete = _select_complete_reviewers(tally, met)
    abilities = fit_skill_model(play, nuisances=nuisances)
    shares = _add_skill_metrics(
        measure_leaderboard_rates(tally, _select_panel_cells(tally, met, complete)), abilities
    )
    reviewers = _rank_reviewers(tally, shares, met, complete)
    creators = _rank_creators(tally, shares, met, complete)
    return SeasonLeaderboard(
        condition=play.condition,
        reviewers=tuple(reviewers),
        creators=tuple(creators),
        cells=tuple(_iter_matrix_cells(tally, shares)),
        n_scenes=tally.n_scenes,
        n_resamples=resamples,
        sway=abilities.sway,
    )


def _add_skill_metrics(shares: LeaderboardRates, abilities: SkillEstimates) -> LeaderboardRates:
    def beside(
        figures: Sequence[Mapping[str, Measured]], more: Sequence[Mapping[str, Measured]]
    ) -> Sequence[Mapping[str, Measured]]:
        return [{**left, **right} for left, right in zip(figures, more, strict=True)]

    return replace(
        shares,
        reviewers=beside(shares.reviewers, abilities.reviewers),
        creators=beside(shares.creators, abilities.creators),
    )


def _select_complete_reviewers(tally: ResampledAnswerTable, met: BoolArray) -> BoolArray:
    """Return a mask of the reviewers with complete answers about every creator and the real clips."""
    needed = (tally.clips > 0)[tally.sources.played]
    complete: BoolArray = np.all((met[:, tally.sources.played] | ~needed) & needed.any(), axis=1)
    return complete


def _get_baseline_mask(play: SeasonAnswerTable) -> BoolArray:
    return np.array([name in play.floors for name in play.reviewers], dtype=np.bool_)


def _select_panel_cells(
    tally: ResampledAnswerTable, met: BoolArray, complete: BoolArray
) -> BoolArray:
    """Return a mask of the reviewers (rows) whose answers count for each clip source (columns).

    They are the reviewers of the panel. If the panel is empty, they are all reviewers with complete
    answers about the source, without baselines.
    """
    panel = complete & ~_get_baseline_mask(tally.play)
    if not panel.any():
        return met & ~_get_baseline_mask(tally.play)[:, np.newaxis]
    used: BoolArray = met & panel[:, np.newaxis]
    return used


def _rank_reviewers(
    tally: ResampledAnswerTable, shares: LeaderboardRates, met: BoolArray, complete: BoolArray
) -> list[LeaderboardRow]:
    play = tally.play
    rows = [
        LeaderboardRow(
            name=name,
            kind="floor" if name in play.floors else "reviewer",
            figures=figures,
            lacks=tuple(_iter_missing_sources(tally, met[i])),
        )
        for i, (name, figures) in enumerate(zip(play.reviewers, shares.reviewers, strict=True))
    ]
    has_value = np.isfinite(shares.accuracy[0])
    compared = np.flatnonzero(complete & has_value)
    return _rank_and_sort_rows(
        rows, shares.accuracy, compared, kind="reviewer", n_scenes=tally.n_scenes
    )


def _rank_creators(
    tally: ResampledAnswerTable, shares: LeaderboardRates, met: BoolArray, complete: BoolArray
) -> list[LeaderboardRow]:
    play, lineup = tally.play, tally.play.lineup
    floor = _get_baseline_mask(play)
    rows = [
        LeaderboardRow(
            name=name,
            kind="creator",
            figures=figures,
            lacks=tuple(np.array(play.reviewers, dtype=object)[~met[:, i] & ~floor]),
        )
        for i, (name, figures) in enumerate(zip(lineup.creators, shares.creators, strict=True))
    ]
    has_value = np.isfinite(shares.fakeness[0]) & bool((complete & ~floor).any())
    compared = np.flatnonzero(has_value & tally.counted)
    ordered = _rank_and_sort_rows(
        rows, shares.fakeness, compared, kind="creator", n_scenes=tally.n_scenes
    )
    controls = [
        LeaderboardRow(name=name, kind="control", figures=figures)
        for name, figures in zip(lineup.controls, shares.controls, strict=True)
    ]
    return ordered + controls


def _iter_missing_sources(tally: ResampledAnswerTable, met: BoolArray) -> Iterator[str]:
    lineup, sources = tally.play.lineup, tally.sources
    if tally.clips[sources.real] and not met[sources.real]:
        yield REAL_CLIPS
    for i, name in enumerate(lineup.creators):
        if tally.clips[i] and not met[i]:
            yield name


def _rank_and_sort_rows(
    rows: list[LeaderboardRow],
    values: Array,
    compared: IntArray,
    *,
    kind: Literal["reviewer", "creator"],
    n_scenes: int,
) -> list[LeaderboardRow]:
    """Rank and sort rows: ranked, then with missing cells, then baselines; equal ranks by name."""
    better: Literal["high", "low"] = "high" if kind == "reviewer" else "low"
    chosen = [int(i) for i in compared]
    against = compare_entrants(values[:, chosen], better=better, n_scenes=n_scenes)
    ranked = [i for i in chosen if rows[i].kind == kind]
    ranks = dict(zip(ranked, rank_means(values[0, ranked].tolist(), better=better), strict=True))
    leading = find_leading_entrants(values[:, ranked], better=better, n_scenes=n_scenes)
    first = {i for i, is_leading in zip(ranked, leading, strict=True) if is_leading}
    if kind == "reviewer":
        first = {i for i in first if values[0, i] > _compute_guessing_accuracy(rows, values[0])}
    result = list(rows)
    for line, i in enumerate(chosen):
        others = [(at, j) for at, j in enumerate(chosen) if j != i]
        result[i] = replace(
            rows[i],
            rank=ranks.get(i),
            first_class=i in first,
            above={rows[j].name: against.share(line, at) for at, j in others},
            surely_above=tuple(rows[j].name for at, j in others if against.sure[line, at]),
        )
    return sorted(result, key=lambda r: (r.rank or len(result) + 1, r.kind == "floor", r.name))


def _compute_guessing_accuracy(rows: Sequence[LeaderboardRow], accuracy: Array) -> float:
    """Return the accuracy of guessing: 0.5, or that of the season's coin baseline if it is higher."""
    lucky = [
        float(value)
        for row, value in zip(rows, accuracy, strict=True)
        if row.kind == "floor" and row.name == COIN and np.isfinite(value)
    ]
    return max([0.5, *lucky])


def _iter_matrix_cells(
    tally: ResampledAnswerTable, shares: LeaderboardRates
) -> Iterator[ReviewerCreatorCell]:
    lineup, sources, play = tally.play.lineup, tally.sources, tally.play
    asked, valid = tally.observed(silent=True), tally.observed(silent=False)
    columns = [(i, name) for i, name in enumerate(lineup.creators)]
    changed = [(sources.real + 1 + i, name) for i, name in enumerate(lineup.controls)]
    for line, (reviewer, of) in enumerate(zip(play.reviewers, shares.cells, strict=True)):
        for i, name in columns + changed:
            n_asked = int(asked[line, i])
            if not n_asked:
                continue
            cell = ReviewerCreatorCell(
                reviewer=reviewer,
                creator=name,
                caught=of.caught[i],
                n_asked=n_asked,
                n_silent=n_asked - int(valid[line, i]),
            )
            if i < sources.real:
                cell = replace(cell, accuracy=of.accuracy[i], balanced=of.balanced[i])
            yield cell
