"""Both leaderboards of a season, with rates and confidence intervals, computed from its folder.

Fakeness is the rate at which reviewers call the clips of a creator generated.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from unreel.arena.answers.answer_table import (
    NOBODY,
    SAID_GENERATED,
    SILENT,
    ResampledAnswerCounts,
    ResampledAnswerTable,
    SeasonAnswerTable,
)
from unreel.arena.answers.season_answers import (
    exclude_creators,
    find_name_indices,
    read_reviewer_answers,
    read_season_answers,
    read_season_clips,
)
from unreel.arena.boards.leaderboard_metrics import (
    CREATOR_FIGURES,
    REAL_CLIPS,
    REVIEWER_FIGURES,
    LeaderboardRow,
    ReviewerCreatorCell,
    SeasonLeaderboard,
    compare_entrants,
    find_leading_entrants,
    is_above_chance,
    rank_means,
)
from unreel.arena.boards.preference_ranking import (
    TOOK_FIRST,
    TOOK_SECOND,
    PairAnswerTable,
    PreferenceRates,
    rank_entrants_by_pair_answers,
)
from unreel.arena.season.folder import SeasonEntrants, SeasonFolder
from unreel.core.clip import format_creator_with_setting
from unreel.core.errors import UnknownNameError
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.core.failure import Failure
from unreel.core.settings import read_environment_settings
from unreel.core.verdict import Position, PreferenceVerdict, Verdict
from unreel.creators.contract import CreatorInput
from unreel.protocols.paper_formulas import PERCENT
from unreel.stats.proportion_intervals import compute_proportion_intervals
from unreel.stats.resampling import RESAMPLES
from unreel.stats.row_sample import Array, BoolArray, IntArray
from unreel.stats.skill_likelihood import SkillAnswerColumns, SkillTermLayout
from unreel.stats.skill_model import (
    SkillTermEstimates,
    estimate_skill_intervals,
    standardise_columns,
)


@dataclass(frozen=True, slots=True, eq=False)
class ResampledRates:
    """Several rates (columns), observed and on each resample, and their number of answers by scene."""

    values: Array
    """Values: a row for each resample (row 0: observed), a column for each rate."""
    by_scene: Array
    """Number of answers: a row for each scene, a column for each rate."""

    @classmethod
    def beside(cls, *rates: "ResampledRates") -> "ResampledRates":
        """Return one table with the columns of all rate tables in `rates`."""
        return cls(
            np.concatenate([rate.values for rate in rates], axis=1),
            np.concatenate([rate.by_scene for rate in rates], axis=1),
        )

    def measure(self) -> list[Measured]:
        """Return each rate in percent, with its confidence interval."""
        n = self.by_scene.sum(axis=0)
        n_scenes = (self.by_scene > 0).sum(axis=0)
        squares = (self.by_scene**2).sum(axis=0)
        ends = compute_proportion_intervals(
            self.values[0],
            self.values[1:],
            n_clusters=n_scenes.astype(np.float64),
            n_free=n**2 / np.maximum(squares, 1.0),
        )
        columns = (self.values[0], ends.low, ends.high, n, n_scenes)
        return [
            _build_percentage_estimate(*map(float, column)) for column in zip(*columns, strict=True)
        ]


def _build_percentage_estimate(
    value: float, low: float, high: float, n: float, n_scenes: float
) -> Measured:
    if np.isnan(value) or n < 1:
        return Unmeasured("no readable answer to measure it by")
    if np.isnan(low):
        return Unmeasured(f"too few scenes carry it; the bare value is {PERCENT * value:.4g} %")
    return Estimate(value=value, low=low, high=high, n=int(n), n_clusters=int(n_scenes)).scaled(
        PERCENT
    )


@dataclass(frozen=True, slots=True, eq=False)
class ReviewerSourceRates:
    """Rates of one reviewer on the clips of each source."""

    caught: list[Measured]
    """Rate of "generated" for every source: creators, real clips, controls."""
    accuracy: list[Measured]
    """Accuracy on real clips pooled with one creator's clips, for every creator."""
    balanced: list[Measured]


@dataclass(frozen=True, slots=True, eq=False)
class LeaderboardRates:
    """All rates of a season's answers: of reviewers, creators, controls, and reviewers by creators."""

    reviewers: Sequence[Mapping[str, Measured]]
    accuracy: Array
    """Accuracy, which ranks the reviewers: a row for each resample, a column for each reviewer."""
    cells: list[ReviewerSourceRates]
    creators: Sequence[Mapping[str, Measured]]
    fakeness: Array
    controls: Sequence[Mapping[str, Measured]]


def measure_leaderboard_rates(answers: ResampledAnswerTable, used: BoolArray) -> LeaderboardRates:
    """Compute all rates of both leaderboards from the answer table `answers`.

    Args:
        answers: The answers with their bootstrap resamples.
        used: Mask of the reviewers (rows) that count for each clip source (columns).
    """
    reviewers, accuracy, cells = [], [], []
    pool = _PooledAnswerCounts.empty(answers)
    for i, counts in enumerate(answers.counts()):
        proportions = dict(_iter_reviewer_rates(counts, answers))
        accuracy.append(proportions["accuracy"].values[:, 0])
        measured = ResampledRates.beside(*proportions.values()).measure()
        reviewers.append(dict(zip(proportions, measured, strict=True)))
        cells.append(_measure_reviewer_source_rates(counts, answers))
        pool.add(counts, used[i])
    of_sources = pool.shares()
    fakeness = of_sources["fakeness"].values[:, answers.sources.made]
    figures = {name: rate.measure() for name, rate in of_sources.items()}
    made, changed = answers.sources.made, answers.sources.changed
    names = [name for name in CREATOR_FIGURES if name in figures]
    creators = [
        dict(zip(names, values, strict=True))
        for values in zip(*(figures[name][made] for name in names), strict=True)
    ]
    controls = [{"called-generated": value} for value in figures["fakeness"][changed]]
    rates = np.stack(accuracy, axis=1) if accuracy else np.zeros((len(answers.weights), 0))
    return LeaderboardRates(reviewers, rates, cells, creators, fakeness, controls)


def _iter_reviewer_rates(
    counts: ResampledAnswerCounts, answers: ResampledAnswerTable
) -> Iterator[tuple[str, ResampledRates]]:
    """Yield each metric of a reviewer: its name, and its observed and resampled values."""
    sources = answers.sources
    met = counts.valid[0, sources.made] > 0
    of = _CorrectAnswerCounts.of(counts, real=sources.real, made=np.flatnonzero(met))
    met_changed = np.flatnonzero(counts.valid[0, sources.changed] > 0) + sources.changed.start
    changed = _compute_ratio(counts.generated[:, met_changed], counts.valid[:, met_changed])
    played, right = sources.played, of.right.sum(axis=1)
    valid, asked = (column[:, played].sum(axis=1) for column in (counts.valid, counts.asked))
    generated = counts.generated[:, played].sum(axis=1)
    everything = counts.asked.sum(axis=1)
    columns = {
        "accuracy": (_compute_column_mean(of.pooled(counts.valid)), counts.scene_valid[:, played]),
        "accuracy-all": (
            _compute_column_mean(of.pooled(counts.asked)),
            counts.scene_asked[:, played],
        ),
        "balanced": (
            _compute_column_mean(of.balanced(counts.valid)),
            counts.scene_valid[:, played],
        ),
        "balanced-all": (
            _compute_column_mean(of.balanced(counts.asked)),
            counts.scene_asked[:, played],
        ),
        "plain": (_compute_ratio(right, valid), counts.scene_valid[:, played]),
        "plain-all": (_compute_ratio(right, asked), counts.scene_asked[:, played]),
        "caught": (
            _compute_column_mean(of.caught(counts.valid)),
            counts.scene_valid[:, sources.made],
        ),
        "false-alarms": (
            _compute_ratio(counts.generated[:, sources.real], counts.valid[:, sources.real]),
            counts.scene_valid[:, [sources.real]],
        ),
        "control-false-alarms": (
            _compute_column_mean(changed),
            counts.scene_valid[:, sources.changed],
        ),
        "said-real": (_compute_ratio(valid - generated, valid), counts.scene_valid[:, played]),
        "answered": (_compute_ratio(counts.valid.sum(axis=1), everything), counts.scene_asked),
    }
    for name in REVIEWER_FIGURES:
        if name in columns:
            values, by_scene = columns[name]
            yield name, ResampledRates(values[:, np.newaxis], by_scene.sum(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True, eq=False)
class _CorrectAnswerCounts:
    """Numbers of right answers of one reviewer: on real clips, and on clips of the creators `made`."""

    real: int
    made: IntArray
    right: Array
    """Number of right answers: a column for real clips, then one for each of `made`."""

    @classmethod
    def of(
        cls, counts: ResampledAnswerCounts, *, real: int, made: IntArray
    ) -> "_CorrectAnswerCounts":
        right_real = counts.valid[:, [real]] - counts.generated[:, [real]]
        return cls(real, made, np.concatenate([right_real, counts.generated[:, made]], axis=1))

    def pooled(self, totals: Array) -> Array:
        """Compute a reviewer's accuracy on real clips pooled with one creator's clips, for each creator."""
        n_real = totals[:, [self.real]]
        rate = _compute_ratio(self.right[:, [0]] + self.right[:, 1:], n_real + totals[:, self.made])
        return np.where(n_real > 0, rate, np.nan)

    def caught(self, totals: Array) -> Array:
        """Compute a reviewer's accuracy on each creator's clips: the rate of answers "generated"."""
        return _compute_ratio(self.right[:, 1:], totals[:, self.made])

    def balanced(self, totals: Array) -> Array:
        """Compute, for each creator, the mean of a reviewer's accuracies on real clips and on its clips."""
        of_real = _compute_ratio(self.right[:, [0]], totals[:, [self.real]])
        balanced: Array = (of_real + self.caught(totals)) / 2
        return balanced


def _measure_reviewer_source_rates(
    counts: ResampledAnswerCounts, answers: ResampledAnswerTable
) -> ReviewerSourceRates:
    sources = answers.sources
    of = _CorrectAnswerCounts.of(counts, real=sources.real, made=np.arange(sources.n_creators))
    caught = ResampledRates(_compute_ratio(counts.generated, counts.valid), counts.scene_valid)
    by_scene = counts.scene_valid[:, sources.made] + counts.scene_valid[:, [sources.real]]
    met = np.where(counts.valid[0, sources.made] > 0, 1.0, np.nan)
    accuracy = ResampledRates(of.pooled(counts.valid) * met, by_scene)
    balanced = ResampledRates(of.balanced(counts.valid), by_scene)
    measured = ResampledRates.beside(caught, accuracy, balanced).measure()
    ends = sources.total, sources.total + sources.n_creators
    return ReviewerSourceRates(
        measured[: ends[0]], measured[ends[0] : ends[1]], measured[ends[1] :]
    )


@dataclass(slots=True, eq=False)
class _PooledAnswerCounts:
    """Sums of the answer counts of all reviewers per clip source; reviewers are added one by one."""

    caught: Array
    caught_all: Array
    generated: Array
    valid: Array
    scene_valid: Array
    scene_asked: Array
    n_reviewers: Array

    @classmethod
    def empty(cls, answers: ResampledAnswerTable) -> "_PooledAnswerCounts":
        lines, total = len(answers.weights), answers.sources.total
        shape, by_scene = (lines, total), (answers.n_scenes, total)
        return cls(
            caught=np.zeros(shape),
            caught_all=np.zeros(shape),
            generated=np.zeros(shape),
            valid=np.zeros(shape),
            scene_valid=np.zeros(by_scene),
            scene_asked=np.zeros(by_scene),
            n_reviewers=np.zeros(total),
        )

    def add(self, counts: ResampledAnswerCounts, used: BoolArray) -> None:
        self.caught += np.where(used, _compute_ratio(counts.generated, counts.valid), 0.0)
        self.caught_all += np.where(used, _compute_ratio(counts.generated, counts.asked), 0.0)
        self.generated += np.where(used, counts.generated, 0.0)
        self.valid += np.where(used, counts.valid, 0.0)
        self.scene_valid += np.where(used, counts.scene_valid, 0.0)
        self.scene_asked += np.where(used, counts.scene_asked, 0.0)
        self.n_reviewers += used

    def shares(self) -> Mapping[str, ResampledRates]:
        """Return the fakeness metrics by name, with one column per clip source."""
        return {
            "fakeness": ResampledRates(
                _compute_ratio(self.caught, self.n_reviewers), self.scene_valid
            ),
            "fakeness-all": ResampledRates(
                _compute_ratio(self.caught_all, self.n_reviewers), self.scene_asked
            ),
            "fakeness-pooled": ResampledRates(
                _compute_ratio(self.generated, self.valid), self.scene_valid
            ),
        }


def _compute_ratio(part: Array, total: Array) -> Array:
    """Return `part / total`; NaN if `total` is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Array = np.where(total > 0, part / total, np.nan)
    return ratio


def _compute_column_mean(values: Array) -> Array:
    """Return the mean over the columns; NaN if there are no columns."""
    if not values.shape[1]:
        return np.full(len(values), np.nan)
    mean: Array = values.mean(axis=1)
    return mean


@dataclass(frozen=True, slots=True, eq=False)
class SkillEstimates:
    """Estimates of the skill model, in the order of the answer table's reviewers and creators."""

    reviewers: Sequence[Mapping[str, Measured]]
    creators: Sequence[Mapping[str, Measured]]
    sway: Mapping[str, Measured]


def fit_skill_model(answers: SeasonAnswerTable, *, nuisances: Sequence[str] = ()) -> SkillEstimates:
    """Fit a model of reviewers' ability and creators' realism to all readable answers.

    Answers about controls are excluded. `nuisances` names clip properties to correct for.
    """
    clips = answers.clips
    columns = [_require_nuisance_index(name, clips.nuisances) for name in nuisances]
    of_clips = clips.nuisance[:, columns].astype(np.float64)
    rows = np.flatnonzero((answers.said != SILENT) & (clips.control[answers.clip] == NOBODY))
    clip = answers.clip[rows]
    scaled = standardise_columns(of_clips, np.flatnonzero(np.bincount(clip)))
    alike: BoolArray = np.all(scaled == 0, axis=0)
    shape = SkillTermLayout(len(answers.reviewers), len(clips.creators), int((~alike).sum()))
    skills = estimate_skill_intervals(
        SkillAnswerColumns(
            reviewer=answers.reviewer[rows].astype(np.int64),
            creator=clips.creator[clip].astype(np.int64),
            scene=clips.scene[clip].astype(np.int64),
            generated=answers.said[rows] == SAID_GENERATED,
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
        raise UnknownNameError("nuisance", name, list(known))
    return known.index(name)


COIN = "coin"
"""Name of the random baseline."""


def rank_season_entrants(
    answers: SeasonAnswerTable,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    nuisances: Sequence[str] = (),
) -> SeasonLeaderboard:
    """Rank the reviewers and the creators of a season by the answers in `answers`.

    Only reviewers of the panel have ranks, and only they affect the ranks of creators. A reviewer is
    in the panel if it was asked about every real and every generated clip, and gave readable answers
    to half of the clips of each source. Baselines and other reviewers are measured, but affect no
    other row. The skill model is fitted to all answers, with the properties named in `nuisances`.
    """
    tally = ResampledAnswerTable.of(answers, seed=seed, resamples=resamples)
    met = tally.met()
    complete = _select_complete_reviewers(tally, met)
    abilities = fit_skill_model(answers, nuisances=nuisances)
    proportions = _add_skill_metrics(
        measure_leaderboard_rates(tally, _select_panel_cells(tally, met, complete)), abilities
    )
    reviewers = _rank_reviewers(tally, proportions, met, complete)
    creators = _rank_creators(tally, proportions, met, complete)
    return SeasonLeaderboard(
        condition=answers.condition,
        reviewers=tuple(reviewers),
        creators=tuple(creators),
        cells=tuple(_iter_matrix_cells(tally, proportions)),
        n_scenes=tally.n_scenes,
        n_resamples=resamples,
        sway=abilities.sway,
    )


def _add_skill_metrics(rates: LeaderboardRates, estimates: SkillEstimates) -> LeaderboardRates:
    def beside(
        figures: Sequence[Mapping[str, Measured]], more: Sequence[Mapping[str, Measured]]
    ) -> Sequence[Mapping[str, Measured]]:
        return [{**left, **right} for left, right in zip(figures, more, strict=True)]

    return replace(
        rates,
        reviewers=beside(rates.reviewers, estimates.reviewers),
        creators=beside(rates.creators, estimates.creators),
    )


def _select_complete_reviewers(answers: ResampledAnswerTable, met: BoolArray) -> BoolArray:
    """Return a mask of the reviewers with complete answers about every creator and the real clips."""
    needed = (answers.clips > 0)[answers.sources.played]
    complete: BoolArray = np.all((met[:, answers.sources.played] | ~needed) & needed.any(), axis=1)
    return complete


def _get_baseline_mask(answers: SeasonAnswerTable) -> BoolArray:
    return np.array([name in answers.floors for name in answers.reviewers], dtype=np.bool_)


def _select_panel_cells(
    answers: ResampledAnswerTable, met: BoolArray, complete: BoolArray
) -> BoolArray:
    """Return a mask of the reviewers (rows) whose answers count for each clip source (columns).

    They are the reviewers of the panel. If the panel is empty, they are all reviewers with complete
    answers about the source, without baselines.
    """
    panel = complete & ~_get_baseline_mask(answers.play)
    if not panel.any():
        return met & ~_get_baseline_mask(answers.play)[:, np.newaxis]
    used: BoolArray = met & panel[:, np.newaxis]
    return used


def _rank_reviewers(
    answers: ResampledAnswerTable, rates: LeaderboardRates, met: BoolArray, complete: BoolArray
) -> list[LeaderboardRow]:
    play = answers.play
    rows = [
        LeaderboardRow(
            name=name,
            kind="floor" if name in play.floors else "reviewer",
            figures=figures,
            lacks=tuple(_iter_missing_sources(answers, met[i])),
        )
        for i, (name, figures) in enumerate(zip(play.reviewers, rates.reviewers, strict=True))
    ]
    has_value = np.isfinite(rates.accuracy[0])
    compared = np.flatnonzero(complete & has_value)
    return _rank_and_sort_rows(
        rows, rates.accuracy, compared, kind="reviewer", n_scenes=answers.n_scenes
    )


def _rank_creators(
    answers: ResampledAnswerTable, rates: LeaderboardRates, met: BoolArray, complete: BoolArray
) -> list[LeaderboardRow]:
    play, clips = answers.play, answers.play.clips
    floor = _get_baseline_mask(play)
    rows = [
        LeaderboardRow(
            name=name,
            kind="creator",
            figures=figures,
            lacks=tuple(np.array(play.reviewers, dtype=object)[~met[:, i] & ~floor]),
        )
        for i, (name, figures) in enumerate(zip(clips.creators, rates.creators, strict=True))
    ]
    has_value = np.isfinite(rates.fakeness[0]) & bool((complete & ~floor).any())
    compared = np.flatnonzero(has_value & answers.counted)
    ordered = _rank_and_sort_rows(
        rows, rates.fakeness, compared, kind="creator", n_scenes=answers.n_scenes
    )
    controls = [
        LeaderboardRow(name=name, kind="control", figures=figures)
        for name, figures in zip(clips.controls, rates.controls, strict=True)
    ]
    return ordered + controls


def _iter_missing_sources(answers: ResampledAnswerTable, met: BoolArray) -> Iterator[str]:
    clips, sources = answers.play.clips, answers.sources
    if answers.clips[sources.real] and not met[sources.real]:
        yield REAL_CLIPS
    for i, name in enumerate(clips.creators):
        if answers.clips[i] and not met[i]:
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
        guessing = _compute_guessing_accuracy(rows, values[0])
        first = {
            i
            for i in first
            if values[0, i] > guessing
            and is_above_chance(rows[i].figures["balanced"], n_reviewers=len(ranked))
        }
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
    answers: ResampledAnswerTable, rates: LeaderboardRates
) -> Iterator[ReviewerCreatorCell]:
    clips, sources, play = answers.play.clips, answers.sources, answers.play
    asked, valid = answers.observed(silent=True), answers.observed(silent=False)
    columns = [(i, name) for i, name in enumerate(clips.creators)]
    changed = [(sources.real + 1 + i, name) for i, name in enumerate(clips.controls)]
    for line, (reviewer, of) in enumerate(zip(play.reviewers, rates.cells, strict=True)):
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


_TOOK = {Position.FIRST: TOOK_FIRST, Position.SECOND: TOOK_SECOND}


class _AnsweredPair(NamedTuple):
    reviewer: str
    first: str
    second: str
    scene: str
    took: int


def read_pair_answers(folder: SeasonFolder, condition: str) -> PairAnswerTable:
    """Return all answers about pairs of a preference season under one condition, without baselines."""
    entrants = folder.require_played()
    entrants.require_condition(condition)
    pairs = list(_iter_answered_pairs(folder, entrants, condition))
    titles = entrants.shown(entrants.reviewers)
    reviewers = tuple(sorted(titles[judge.name] for judge in entrants.heard if not judge.floor))
    creators = tuple(sorted({creator for pair in pairs for creator in pair[1:3]} - {""}))
    scenes = tuple(sorted({pair.scene for pair in pairs}))
    return PairAnswerTable(
        condition=condition,
        reviewers=reviewers,
        creators=creators,
        scenes=scenes,
        reviewer=find_name_indices(reviewers, [pair.reviewer for pair in pairs]),
        first=find_name_indices(creators, [pair.first for pair in pairs]),
        second=find_name_indices(creators, [pair.second for pair in pairs]),
        scene=find_name_indices(scenes, [pair.scene for pair in pairs]),
        took=np.array([pair.took for pair in pairs], dtype=np.int8),
    )


def _iter_answered_pairs(
    folder: SeasonFolder, entrants: SeasonEntrants, condition: str
) -> Iterator[_AnsweredPair]:
    settings, titles = read_environment_settings(), entrants.shown(entrants.reviewers)
    for reviewer in entrants.heard:
        if reviewer.floor:
            continue
        for planned, _, read in read_reviewer_answers(folder, reviewer, condition, settings):
            first, second = map(format_creator_with_setting, planned.origins)
            if first != second:
                scene = planned.source or planned.name
                yield _AnsweredPair(
                    titles[reviewer.name], first, second, scene, _get_chosen_position(read)
                )


def _get_chosen_position(read: Verdict | Failure) -> int:
    if isinstance(read, PreferenceVerdict) and isinstance(read.real, Position):
        return _TOOK[read.real]
    return SILENT


def iter_season_leaderboards(
    folder: SeasonFolder,
    conditions: Sequence[str] = (),
    *,
    resamples: int = RESAMPLES,
    nuisances: Sequence[str] = (),
) -> Iterator[tuple[SeasonAnswerTable, SeasonLeaderboard]]:
    """Yield the answers and the leaderboards of a season under each of `conditions`; by default all.

    People who voted in the season count as reviewers. Removed creators have a row without a rank,
    and their clips affect no other entrant.
    """
    entrants = folder.require_played()
    clips = read_season_clips(folder, retired=True)
    for title in conditions or entrants.conditions:
        answers = read_season_answers(folder, title, clips=clips, people=True)
        rows = rank_without_retired_creators(
            answers,
            seed=entrants.seed,
            resamples=resamples,
            nuisances=nuisances,
            retired=entrants.retired_creators,
        )
        yield answers, rows


def rank_without_retired_creators(
    answers: SeasonAnswerTable,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    nuisances: Sequence[str] = (),
    retired: Collection[str] = (),
) -> SeasonLeaderboard:
    """Rank a season as if its `retired` creators did not exist; their rows follow without a rank.

    So later reviewers, who were not asked about retired creators, still have complete answers.
    """
    gone = frozenset(
        row
        for row in answers.clips.creators
        if any(is_leaderboard_row_of_entrant(row, title) for title in retired)
    )
    full = rank_season_entrants(answers, seed=seed, resamples=resamples, nuisances=nuisances)
    if not gone:
        return full
    current = exclude_creators(answers, gone)
    board = rank_season_entrants(current, seed=seed, resamples=resamples, nuisances=nuisances)
    unranked = (
        replace(row, rank=None, first_class=False) for row in full.creators if row.name in gone
    )
    ranked = [row for row in board.creators if row.rank is not None]
    return replace(
        board,
        creators=(*ranked, *unranked, *(row for row in board.creators if row.rank is None)),
        cells=(*board.cells, *(cell for cell in full.cells if cell.creator in gone)),
    )


def is_leaderboard_row_of_entrant(row: str, title: str) -> bool:
    """Return whether a leaderboard row belongs to `title`: its name is `title` or `title/SETTING`."""
    before, _, setting = row.rpartition("/")
    return row == title or (before == title and setting in set(CreatorInput))


def iter_pair_answers_and_leaderboards(
    folder: SeasonFolder, conditions: Sequence[str] = ()
) -> Iterator[tuple[PairAnswerTable, PreferenceRates]]:
    """Yield the answers about pairs and their leaderboards under each of `conditions`; by default all."""
    entrants = folder.require_played()
    for title in conditions or entrants.conditions:
        answers = read_pair_answers(folder, title)
        yield answers, rank_entrants_by_pair_answers(answers, seed=entrants.seed)
