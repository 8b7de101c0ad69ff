"""Both leaderboards of a season, with rates and confidence intervals, computed from its folder.

Fakeness is the rate at which reviewers call the clips of a creator generated.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from unreel.arena.answers.answer_table import (
    ANSWERED_GENERATED,
    NOBODY,
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
    CREATOR_METRICS,
    REAL_CLIPS,
    REVIEWER_METRICS,
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
from unreel.arena.season.folder import SeasonFolder
from unreel.core.clip import format_creator_with_setting
from unreel.core.errors import UnknownNameError
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.core.settings import read_environment_settings
from unreel.core.verdict import Position, PreferenceVerdict
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
    def stack(cls, *rates: "ResampledRates") -> "ResampledRates":
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
        lows, highs = compute_proportion_intervals(
            self.values[0],
            self.values[1:],
            n_clusters=n_scenes.astype(np.float64),
            n_free=n**2 / np.maximum(squares, 1.0),
        )
        columns = (self.values[0], lows, highs, n, n_scenes)
        measured: list[Measured] = []
        for value, low, high, size, n_clusters in zip(*columns, strict=True):
            if np.isnan(value) or size < 1:
                measured.append(Unmeasured("no readable answer to measure it by"))
            elif np.isnan(low):
                bare = f"the bare value is {PERCENT * value:.4g} %"
                measured.append(Unmeasured(f"too few scenes carry it; {bare}"))
            else:
                rate = Estimate(
                    value=float(value),
                    low=float(low),
                    high=float(high),
                    n=int(size),
                    n_clusters=int(n_clusters),
                )
                measured.append(rate.scaled(PERCENT))
        return measured


@dataclass(frozen=True, slots=True, eq=False)
class LeaderboardRates:
    """All rates of a season's answers: of reviewers, creators, controls, and reviewers by creators."""

    reviewers: Sequence[Mapping[str, Measured]]
    accuracy: Array
    """Accuracy, which ranks the reviewers: a row for each resample, a column for each reviewer."""
    cells: list[tuple[list[Measured], list[Measured], list[Measured]]]
    """Rates of each reviewer: of "generated" for every source (creators, real clips, controls); accuracy,
    and balanced accuracy, on real clips pooled with one creator's clips, for every creator.
    """
    creators: Sequence[Mapping[str, Measured]]
    fakeness: Array
    controls: Sequence[Mapping[str, Measured]]


def measure_leaderboard_rates(answers: ResampledAnswerTable, used: BoolArray) -> LeaderboardRates:
    """Compute all rates of both leaderboards from the answer table `answers`.

    `used` is a mask of the reviewers (rows) that count for each clip source (columns).
    """
    sources = answers.sources
    made, changed = sources.made, sources.changed
    reviewers, accuracy, cells = [], [], []
    zeros = np.zeros((len(answers.weights), sources.total))
    scene_zeros = np.zeros((answers.n_scenes, sources.total))
    caught, caught_all, generated, valid = (zeros.copy() for _ in range(4))
    scene_valid, scene_sent = scene_zeros.copy(), scene_zeros.copy()
    for i, counts in enumerate(answers.counts()):
        proportions = _compute_reviewer_rates(counts, answers)
        accuracy.append(proportions["accuracy"].values[:, 0])
        measured = ResampledRates.stack(*proportions.values()).measure()
        reviewers.append(dict(zip(proportions, measured, strict=True)))
        cells.append(_measure_reviewer_source_rates(counts, answers))
        caught += np.where(used[i], _compute_ratio(counts.generated, counts.valid), 0.0)
        caught_all += np.where(used[i], _compute_ratio(counts.generated, counts.sent), 0.0)
        generated += np.where(used[i], counts.generated, 0.0)
        valid += np.where(used[i], counts.valid, 0.0)
        scene_valid += np.where(used[i], counts.scene_valid, 0.0)
        scene_sent += np.where(used[i], counts.scene_sent, 0.0)
    n_used = used.sum(axis=0).astype(np.float64)
    of_sources = {
        "fakeness": ResampledRates(_compute_ratio(caught, n_used), scene_valid),
        "fakeness-all": ResampledRates(_compute_ratio(caught_all, n_used), scene_sent),
        "fakeness-pooled": ResampledRates(_compute_ratio(generated, valid), scene_valid),
    }
    fakeness = of_sources["fakeness"].values[:, made]
    measures = {name: rate.measure() for name, rate in of_sources.items()}
    names = [name for name in CREATOR_METRICS if name in measures]
    creators = [
        dict(zip(names, values, strict=True))
        for values in zip(*(measures[name][made] for name in names), strict=True)
    ]
    controls = [{"called-generated": value} for value in measures["fakeness"][changed]]
    rates = np.stack(accuracy, axis=1) if accuracy else np.zeros((len(answers.weights), 0))
    return LeaderboardRates(reviewers, rates, cells, creators, fakeness, controls)


def _compute_reviewer_rates(
    counts: ResampledAnswerCounts, answers: ResampledAnswerTable
) -> dict[str, ResampledRates]:
    sources, sent, valid = answers.sources, counts.sent, counts.valid
    generated, played = counts.generated, sources.played
    made = np.flatnonzero(valid[0, sources.made] > 0)
    changed = np.flatnonzero(valid[0, sources.changed] > 0) + sources.changed.start
    pooled, caught, balanced = _compute_accuracies(counts, valid, real=sources.real, made=made)
    pooled_all, _, balanced_all = _compute_accuracies(counts, sent, real=sources.real, made=made)
    n_sent, n_valid = sent[:, played].sum(axis=1), valid[:, played].sum(axis=1)
    n_generated = generated[:, played].sum(axis=1)
    right = valid[:, sources.real] - generated[:, sources.real] + generated[:, made].sum(axis=1)
    of_changed = _compute_ratio(generated[:, changed], valid[:, changed])
    scene_sent, scene_valid = counts.scene_sent, counts.scene_valid
    values: dict[str, tuple[Array, Array]] = {
        "accuracy": (_compute_column_mean(pooled), scene_valid[:, played]),
        "accuracy-all": (_compute_column_mean(pooled_all), scene_sent[:, played]),
        "balanced": (_compute_column_mean(balanced), scene_valid[:, played]),
        "balanced-all": (_compute_column_mean(balanced_all), scene_sent[:, played]),
        "plain": (_compute_ratio(right, n_valid), scene_valid[:, played]),
        "plain-all": (_compute_ratio(right, n_sent), scene_sent[:, played]),
        "caught": (_compute_column_mean(caught), scene_valid[:, sources.made]),
        "false-alarms": (
            _compute_ratio(generated[:, sources.real], valid[:, sources.real]),
            scene_valid[:, [sources.real]],
        ),
        "control-false-alarms": (_compute_column_mean(of_changed), scene_valid[:, sources.changed]),
        "said-real": (_compute_ratio(n_valid - n_generated, n_valid), scene_valid[:, played]),
        "answered": (_compute_ratio(valid.sum(axis=1), sent.sum(axis=1)), scene_sent),
    }
    return {
        name: ResampledRates(values[name][0][:, np.newaxis], values[name][1].sum(1, keepdims=True))
        for name in REVIEWER_METRICS
        if name in values
    }


def _compute_accuracies(
    counts: ResampledAnswerCounts, totals: Array, *, real: int, made: IntArray
) -> tuple[Array, Array, Array]:
    """Compute a reviewer's accuracies for each creator of `made`, with `totals` as the numbers of clips.

    They are the accuracy on real clips pooled with the creator's clips, the accuracy on the creator's
    clips, and the mean of the accuracies on real clips and on the creator's clips.
    """
    n_real, right_real = totals[:, [real]], counts.valid[:, [real]] - counts.generated[:, [real]]
    pooled = _compute_ratio(right_real + counts.generated[:, made], n_real + totals[:, made])
    caught = _compute_ratio(counts.generated[:, made], totals[:, made])
    balanced = (_compute_ratio(right_real, n_real) + caught) / 2
    return np.where(n_real > 0, pooled, np.nan), caught, balanced


def _measure_reviewer_source_rates(
    counts: ResampledAnswerCounts, answers: ResampledAnswerTable
) -> tuple[list[Measured], list[Measured], list[Measured]]:
    sources = answers.sources
    made = np.arange(sources.n_creators)
    pooled, _, balanced = _compute_accuracies(counts, counts.valid, real=sources.real, made=made)
    by_scene = counts.scene_valid[:, sources.made] + counts.scene_valid[:, [sources.real]]
    is_met = np.where(counts.valid[0, sources.made] > 0, 1.0, np.nan)
    measured = ResampledRates.stack(
        ResampledRates(_compute_ratio(counts.generated, counts.valid), counts.scene_valid),
        ResampledRates(pooled * is_met, by_scene),
        ResampledRates(balanced, by_scene),
    ).measure()
    first, second = sources.total, sources.total + sources.n_creators
    return measured[:first], measured[first:second], measured[second:]


def _compute_ratio(part: Array, total: Array) -> Array:
    """Return `part / total`; NaN if `total` is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Array = np.where(total > 0, part / total, np.nan)
    return ratio


def _compute_column_mean(values: Array) -> Array:
    """Return the mean over the columns; NaN without columns."""
    if not values.shape[1]:
        return np.full(len(values), np.nan)
    mean: Array = values.mean(axis=1)
    return mean


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
    table = ResampledAnswerTable.of(answers, seed=seed, resamples=resamples)
    clips, sources = answers.clips, table.sources
    met, is_needed = table.met(), (table.clips > 0)[sources.played]
    is_floor = np.array([name in answers.floors for name in answers.reviewers], dtype=np.bool_)
    complete = np.all((met[:, sources.played] | ~is_needed) & is_needed.any(), axis=1)
    # With an empty panel, all reviewers with complete answers about a source count, without baselines.
    panel = complete & ~is_floor
    used = met & (panel if panel.any() else ~is_floor)[:, np.newaxis]
    skills, sway = _fit_skill_model(answers, nuisances)
    rates = measure_leaderboard_rates(table, used)

    rows = []
    names = [*zip(range(sources.n_creators), clips.creators, strict=True)]
    for i, name in enumerate(answers.reviewers):
        known = [(sources.real, REAL_CLIPS), *names]
        rows.append(
            LeaderboardRow(
                name=name,
                kind="floor" if is_floor[i] else "reviewer",
                figures={
                    **rates.reviewers[i],
                    "ability": skills.ability[i],
                    "bias": skills.bias[i],
                },
                lacks=tuple(source for at, source in known if table.clips[at] and not met[i, at]),
            )
        )
    compared = np.flatnonzero(complete & np.isfinite(rates.accuracy[0]))
    reviewers = _rank_and_sort_rows(
        rows, rates.accuracy, compared, kind="reviewer", n_scenes=table.n_scenes
    )

    titles = np.array(answers.reviewers, dtype=object)
    rows = [
        LeaderboardRow(
            name=name,
            kind="creator",
            figures={**rates.creators[i], "realism": skills.realism[i]},
            lacks=tuple(titles[~met[:, i] & ~is_floor]),
        )
        for i, name in names
    ]
    has_value = np.isfinite(rates.fakeness[0]) & bool(panel.any())
    creators = _rank_and_sort_rows(
        rows,
        rates.fakeness,
        np.flatnonzero(has_value & table.counted),
        kind="creator",
        n_scenes=table.n_scenes,
    )
    creators += [
        LeaderboardRow(name=name, kind="control", figures=metrics)
        for name, metrics in zip(clips.controls, rates.controls, strict=True)
    ]
    return SeasonLeaderboard(
        condition=answers.condition,
        reviewers=tuple(reviewers),
        creators=tuple(creators),
        cells=tuple(_iter_matrix_cells(table, rates)),
        n_scenes=table.n_scenes,
        n_resamples=resamples,
        sway=sway,
    )


def _fit_skill_model(
    answers: SeasonAnswerTable, nuisances: Sequence[str]
) -> tuple[SkillTermEstimates, dict[str, Measured]]:
    """Fit a model of ability and realism to all readable answers, except those about controls.

    The second result is the effect of each of `nuisances`, the clip properties to correct for.
    """
    clips = answers.clips
    for name in nuisances:
        if name not in clips.nuisances:
            raise UnknownNameError("nuisance", name, list(clips.nuisances))
    values = clips.nuisance[:, [clips.nuisances.index(name) for name in nuisances]]
    rows = np.flatnonzero(
        (answers.answer_codes != SILENT) & (clips.control[answers.clip] == NOBODY)
    )
    clip = answers.clip[rows]
    scaled = standardise_columns(values.astype(np.float64), np.flatnonzero(np.bincount(clip)))
    is_constant: BoolArray = np.all(scaled == 0, axis=0)
    shape = SkillTermLayout(len(answers.reviewers), len(clips.creators), int((~is_constant).sum()))
    skills = estimate_skill_intervals(
        SkillAnswerColumns(
            reviewer=answers.reviewer[rows].astype(np.int64),
            creator=clips.creator[clip].astype(np.int64),
            scene=clips.scene[clip].astype(np.int64),
            generated=answers.answer_codes[rows] == ANSWERED_GENERATED,
            nuisance=scaled[:, ~is_constant][clip],
        ),
        shape,
    )
    estimated = iter(skills.sway)
    nothing = Unmeasured("all clips have the same value, or it is unknown")
    sway = {
        name: nothing if constant else next(estimated)
        for name, constant in zip(nuisances, is_constant, strict=True)
    }
    return skills, sway


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
    above, is_surely_above = compare_entrants(values[:, chosen], better=better, n_scenes=n_scenes)
    ranked = [i for i in chosen if rows[i].kind == kind]
    ranks = dict(zip(ranked, rank_means(values[0, ranked].tolist(), better=better), strict=True))
    leading = find_leading_entrants(values[:, ranked], better=better, n_scenes=n_scenes)
    first = {i for i, is_leading in zip(ranked, leading, strict=True) if is_leading}
    if kind == "reviewer":
        # The accuracy of guessing is 0.5, or that of the coin of the season if it is higher.
        coin = [i for i, row in enumerate(rows) if row.kind == "floor" and row.name == COIN]
        guessing = max([0.5, *(values[0, i] for i in coin if np.isfinite(values[0, i]))])
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
            above={rows[j].name: float(above[line, at]) for at, j in others},
            surely_above=tuple(rows[j].name for at, j in others if is_surely_above[line, at]),
        )
    return sorted(result, key=lambda r: (r.rank or len(result) + 1, r.kind == "floor", r.name))


def _iter_matrix_cells(
    answers: ResampledAnswerTable, rates: LeaderboardRates
) -> Iterator[ReviewerCreatorCell]:
    clips, real = answers.answer_table.clips, answers.sources.real
    sent, valid = answers.observed(silent=True), answers.observed(silent=False)
    columns = [*enumerate(clips.creators), *enumerate(clips.controls, start=real + 1)]
    for line, reviewer in enumerate(answers.answer_table.reviewers):
        caught, accuracy, balanced = rates.cells[line]
        for i, name in columns:
            n_sent = int(sent[line, i])
            if not n_sent:
                continue
            cell = ReviewerCreatorCell(
                reviewer=reviewer,
                creator=name,
                caught=caught[i],
                n_asked=n_sent,
                n_silent=n_sent - int(valid[line, i]),
            )
            if i < real:
                cell = replace(cell, accuracy=accuracy[i], balanced=balanced[i])
            yield cell


def read_pair_answers(folder: SeasonFolder, condition: str) -> PairAnswerTable:
    """Return all answers about pairs of a preference season under one condition, without baselines."""
    entrants = folder.require_played()
    entrants.require_condition(condition)
    titles, settings = entrants.shown(entrants.reviewers), read_environment_settings()
    rows: list[tuple[str, str, str, str]] = []
    took: list[int] = []
    codes = {Position.FIRST: TOOK_FIRST, Position.SECOND: TOOK_SECOND}
    judges = [reviewer for reviewer in entrants.fitted_reviewers if not reviewer.floor]
    for reviewer in judges:
        for planned, _, verdict in read_reviewer_answers(folder, reviewer, condition, settings):
            first, second = map(format_creator_with_setting, planned.origins)
            if first != second:
                scene = planned.source or planned.name
                rows.append((titles[reviewer.name], first, second, scene))
                real = verdict.real if isinstance(verdict, PreferenceVerdict) else None
                took.append(codes[real] if isinstance(real, Position) else SILENT)
    columns = [[row[i] for row in rows] for i in range(4)]
    reviewers = tuple(sorted(titles[reviewer.name] for reviewer in judges))
    creators = tuple(sorted({*columns[1], *columns[2]} - {""}))
    scenes = tuple(sorted(set(columns[3])))
    return PairAnswerTable(
        condition=condition,
        reviewers=reviewers,
        creators=creators,
        scenes=scenes,
        reviewer=find_name_indices(reviewers, columns[0]),
        first=find_name_indices(creators, columns[1]),
        second=find_name_indices(creators, columns[2]),
        scene=find_name_indices(scenes, columns[3]),
        took=np.array(took, dtype=np.int8),
    )


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
    """Return whether a leaderboard row has the name `title` or `title/SETTING`."""
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
