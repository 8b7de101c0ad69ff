"""Both boards of an answer table: reviewers by accuracy, creators by fakeness, with their certainty."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from unreel.arena.answers.play import NOBODY, SAID_GENERATED, SILENT, AnswerTable
from unreel.arena.answers.tally import ResampledAnswers
from unreel.arena.boards.comparison import compare, find_leading, rank_means
from unreel.arena.boards.figures import REAL_CLIPS
from unreel.arena.boards.rates import ResampledRates, measure
from unreel.arena.boards.standings import LeaderboardRow, MatrixCell, SeasonLeaderboard
from unreel.core.errors import UnknownNameError
from unreel.core.estimate import Measured, Unmeasured
from unreel.stats.resampling import RESAMPLES
from unreel.stats.sample import Array, BoolArray, IntArray
from unreel.stats.skill import SkillIntervals, measure_skill, standardise
from unreel.stats.skill_rows import AnswerColumns, TermLayout


@dataclass(frozen=True, slots=True, eq=False)
class SkillEstimates:
    """Estimates of the skill model, by index of the play."""

    reviewers: Sequence[Mapping[str, Measured]]
    creators: Sequence[Mapping[str, Measured]]
    sway: Mapping[str, Measured]


def find_abilities(play: AnswerTable, *, nuisances: Sequence[str] = ()) -> SkillEstimates:
    """Fit the model to every readable answer about real and generated clips; controls are no part of it.

    Raises:
        UnknownNameError: The lineup knows no nuisance of that name.
    """
    lineup = play.lineup
    columns = [_require_nuisance_index(name, lineup.nuisances) for name in nuisances]
    of_clips = lineup.nuisance[:, columns].astype(np.float64)
    rows = np.flatnonzero((play.said != SILENT) & (lineup.control[play.clip] == NOBODY))
    clip = play.clip[rows]
    scaled = standardise(of_clips, np.flatnonzero(np.bincount(clip)))
    alike: BoolArray = np.all(scaled == 0, axis=0)
    shape = TermLayout(len(play.reviewers), len(lineup.creators), int((~alike).sum()))
    skills = measure_skill(
        AnswerColumns(
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
    skills: SkillIntervals, nuisances: Sequence[str], alike: BoolArray
) -> SkillEstimates:
    moved = iter(skills.sway)
    nothing = Unmeasured("all clips have the same value, or it is unknown")
    both = zip(skills.ability, skills.bias, strict=True)
    return SkillEstimates(
        reviewers=[{"ability": ability, "bias": bias} for ability, bias in both],
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


def rank(
    play: AnswerTable, *, seed: int, resamples: int = RESAMPLES, nuisances: Sequence[str] = ()
) -> SeasonLeaderboard:
    """Rank the reviewers and the creators of a season.

    Reviewers with questions about every real clip and every creator's clips, and readable answers
    to half of each, are the panel: only they have ranks, and only they rank creators. Baselines and
    reviewers with missing cells are measured and change nothing. The skill model is fitted to all
    answers; `nuisances` are added to it by name.
    """
    tally = ResampledAnswers.of(play, seed=seed, resamples=resamples)
    met = tally.met()
    complete = _select_complete_reviewers(tally, met)
    abilities = find_abilities(play, nuisances=nuisances)
    shares = _add_ability_figures(
        measure(tally, _select_panel_cells(tally, met, complete)), abilities
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


def _add_ability_figures(shares: ResampledRates, abilities: SkillEstimates) -> ResampledRates:
    def beside(
        figures: Sequence[Mapping[str, Measured]], more: Sequence[Mapping[str, Measured]]
    ) -> Sequence[Mapping[str, Measured]]:
        return [{**one, **other} for one, other in zip(figures, more, strict=True)]

    return replace(
        shares,
        reviewers=beside(shares.reviewers, abilities.reviewers),
        creators=beside(shares.creators, abilities.creators),
    )


def _select_complete_reviewers(tally: ResampledAnswers, met: BoolArray) -> BoolArray:
    """Return a mask of the reviewers that met every source."""
    needed = (tally.clips > 0)[tally.sources.played]
    complete: BoolArray = np.all((met[:, tally.sources.played] | ~needed) & needed.any(), axis=1)
    return complete


def _is_floor(play: AnswerTable) -> BoolArray:
    return np.array([name in play.floors for name in play.reviewers], dtype=np.bool_)


def _select_panel_cells(tally: ResampledAnswers, met: BoolArray, complete: BoolArray) -> BoolArray:
    """Return a mask of reviewers per source: the panel; without one, all non-baseline reviewers that met it."""
    panel = complete & ~_is_floor(tally.play)
    if not panel.any():
        return met & ~_is_floor(tally.play)[:, np.newaxis]
    used: BoolArray = met & panel[:, np.newaxis]
    return used


def _rank_reviewers(
    tally: ResampledAnswers, shares: ResampledRates, met: BoolArray, complete: BoolArray
) -> list[LeaderboardRow]:
    play = tally.play
    found = [
        LeaderboardRow(
            name=name,
            kind="floor" if name in play.floors else "reviewer",
            figures=figures,
            lacks=tuple(_iter_missing_sources(tally, met[place])),
        )
        for place, (name, figures) in enumerate(zip(play.reviewers, shares.reviewers, strict=True))
    ]
    has_value = np.isfinite(shares.accuracy[0])
    compared = np.flatnonzero(complete & has_value)
    return _sort_ranked_rows(
        found, shares.accuracy, compared, kind="reviewer", n_scenes=tally.n_scenes
    )


def _rank_creators(
    tally: ResampledAnswers, shares: ResampledRates, met: BoolArray, complete: BoolArray
) -> list[LeaderboardRow]:
    play, lineup = tally.play, tally.play.lineup
    floor = _is_floor(play)
    found = [
        LeaderboardRow(
            name=name,
            kind="creator",
            figures=figures,
            lacks=tuple(np.array(play.reviewers, dtype=object)[~met[:, place] & ~floor]),
        )
        for place, (name, figures) in enumerate(zip(lineup.creators, shares.creators, strict=True))
    ]
    has_value = np.isfinite(shares.fakeness[0]) & bool((complete & ~floor).any())
    compared = np.flatnonzero(has_value & tally.counted)
    ordered = _sort_ranked_rows(
        found, shares.fakeness, compared, kind="creator", n_scenes=tally.n_scenes
    )
    controls = [
        LeaderboardRow(name=name, kind="control", figures=figures)
        for name, figures in zip(lineup.controls, shares.controls, strict=True)
    ]
    return ordered + controls


def _iter_missing_sources(tally: ResampledAnswers, met: BoolArray) -> Iterator[str]:
    lineup, sources = tally.play.lineup, tally.sources
    if tally.clips[sources.real] and not met[sources.real]:
        yield REAL_CLIPS
    for place, name in enumerate(lineup.creators):
        if tally.clips[place] and not met[place]:
            yield name


def _sort_ranked_rows(
    found: list[LeaderboardRow],
    values: Array,
    compared: IntArray,
    *,
    kind: Literal["reviewer", "creator"],
    n_scenes: int,
) -> list[LeaderboardRow]:
    """Sort by rank, then entrants with missing cells, then baselines; by name among equals."""
    better: Literal["high", "low"] = "high" if kind == "reviewer" else "low"
    chosen = [int(place) for place in compared]
    against = compare(values[:, chosen], better=better, n_scenes=n_scenes)
    ranked = [place for place in chosen if found[place].kind == kind]
    ranks = dict(zip(ranked, rank_means(values[0, ranked].tolist(), better=better), strict=True))
    leading = find_leading(values[:, ranked], better=better, n_scenes=n_scenes)
    first = {place for place, is_leading in zip(ranked, leading, strict=True) if is_leading}
    if kind == "reviewer":
        first = {
            place
            for place in first
            if values[0, place] > _compute_guessing_accuracy(found, values[0])
        }
    told = list(found)
    for line, place in enumerate(chosen):
        others = [(at, other) for at, other in enumerate(chosen) if other != place]
        told[place] = replace(
            found[place],
            rank=ranks.get(place),
            first_class=place in first,
            above={found[other].name: against.share(line, at) for at, other in others},
            surely_above=tuple(found[other].name for at, other in others if against.sure[line, at]),
        )
    return sorted(told, key=lambda one: (one.rank or len(told) + 1, one.kind == "floor", one.name))


def _compute_guessing_accuracy(found: Sequence[LeaderboardRow], accuracy: Array) -> float:
    """Return the accuracy of guessing: a half, or that of the season's coin if it was luckier."""
    lucky = [
        float(value)
        for one, value in zip(found, accuracy, strict=True)
        if one.kind == "floor" and one.name == COIN and np.isfinite(value)
    ]
    return max([0.5, *lucky])


def _iter_matrix_cells(tally: ResampledAnswers, shares: ResampledRates) -> Iterator[MatrixCell]:
    lineup, sources, play = tally.play.lineup, tally.sources, tally.play
    asked, valid = tally.observed(silent=True), tally.observed(silent=False)
    columns = [(place, name) for place, name in enumerate(lineup.creators)]
    changed = [(sources.real + 1 + place, name) for place, name in enumerate(lineup.controls)]
    for line, (reviewer, of) in enumerate(zip(play.reviewers, shares.cells, strict=True)):
        for place, name in columns + changed:
            n_asked = int(asked[line, place])
            if not n_asked:
                continue
            cell = MatrixCell(
                reviewer=reviewer,
                creator=name,
                caught=of.caught[place],
                n_asked=n_asked,
                n_silent=n_asked - int(valid[line, place]),
            )
            if place < sources.real:
                cell = replace(cell, accuracy=of.accuracy[place], balanced=of.balanced[place])
            yield cell
