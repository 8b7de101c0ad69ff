"""Effects of one changed setting (ablations), measured by paired answers of the same reviewers.

Settings are for example audio, watermark, thinking, frames, prompt, generation setting and
degradation. A pair is two answers of one reviewer: about one clip under two conditions, or about
two clips of one scene. Only pairs with two readable answers count; the number of excluded pairs
is reported.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from unreel.arena.answers.answer_table import (
    ANSWERED_GENERATED,
    ANSWERED_REAL,
    UNASKED,
    Grid,
    Mask,
    SeasonAnswerTable,
    build_answer_grid,
    get_generated_clip_mask,
    get_real_clip_mask,
)
from unreel.arena.boards.leaderboard_metrics import (
    apply_holm_correction,
    estimate_by_scene_jackknife,
    estimate_percentage_by_jackknife,
    sum_by_scene,
)
from unreel.core.estimate import Measured
from unreel.creators.contract import CreatorInput
from unreel.protocols.paper_formulas import PERCENT
from unreel.stats.row_sample import Array, IntArray

_HALF = 0.5
"""Correction of each count (Hautus 1995), so that a reviewer without errors has a finite sensitivity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerBias:
    """Bias and sensitivity of one reviewer under one condition."""

    condition: str
    reviewer: str
    said_real: Measured
    """Percentage of answers "real", mean over real and generated clips; 50 is unbiased."""
    sensitivity: Measured
    """Sensitivity d': distance between real and generated clips in standard deviations; 0 is guessing."""
    criterion: Measured
    """Criterion c: above 0 the reviewer calls doubtful clips real, below 0 generated."""


def measure_reviewer_biases(answers: SeasonAnswerTable) -> tuple[ReviewerBias, ...]:
    """Return the bias towards "real" of every reviewer, including baselines; controls are excluded."""
    generated, filmed = get_generated_clip_mask(answers.clips), get_real_clip_mask(answers.clips)
    biases = []
    for name, line in zip(answers.reviewers, build_answer_grid(answers), strict=True):
        read = (line >= 0) & (generated | filmed)
        is_real_answer = line[read] == ANSWERED_REAL
        classes = generated[read], filmed[read]
        columns = [column.astype(np.float64) for c in classes for column in (is_real_answer & c, c)]
        sums = sum_by_scene(answers.clips.scene[read].astype(np.int64), *columns)
        n = int(read.sum())
        sensitivity, _ = estimate_by_scene_jackknife(
            lambda rows: np.subtract(*_compute_normal_quantiles(rows)), sums, n=n
        )
        criterion, _ = estimate_by_scene_jackknife(
            lambda rows: np.add(*_compute_normal_quantiles(rows)) / 2, sums, n=n
        )
        real_rate = estimate_percentage_by_jackknife(
            lambda rows: PERCENT * (rows[:, 0] / rows[:, 1] + rows[:, 2] / rows[:, 3]) / 2,
            sums,
            n=n,
        )
        biases.append(
            ReviewerBias(
                condition=answers.condition,
                reviewer=name,
                said_real=real_rate,
                sensitivity=sensitivity,
                criterion=criterion,
            )
        )
    return tuple(biases)


def _compute_normal_quantiles(sums: Array) -> tuple[Array, Array]:
    """Compute the normal quantiles of the rates at which real and generated clips are called real."""
    from scipy.special import ndtri

    totals = np.where(sums[:, 1::2] > 0, sums[:, 1::2], np.nan)
    missed, passed = ndtri((sums[:, 0::2] + _HALF) / (totals + 2 * _HALF)).T
    return passed, missed


EVERYBODY = "all reviewers"
SETTING = "generation setting"
DEGRADATION = "degradation"
BALANCED = "balanced"
CAUGHT = "caught"
ALARMS = "said generated"
AS_FILMED = "as filmed"
Knobs = Mapping[str, Mapping[str, str]]
"""Settings of each condition, by the condition's title."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationEffect:
    """Effect of one changed setting on one metric: first minus second, in percentage points."""

    knob: str
    """Setting that differs: `audio`, `sampling`, ..., `generation setting`, `degradation`."""
    first: str
    second: str
    reviewer: str
    """Title of a reviewer, or `EVERYBODY` for all except baselines."""
    figure: str
    difference: Measured
    p: float | None = None
    p_corrected: float | None = None
    """P-value with Holm's correction for all differences that are shown."""
    n_pairs: int
    n_left_out: int
    """Number of pairs without two readable answers."""


def measure_ablation_effects(
    answer_tables: Sequence[SeasonAnswerTable], *, knobs: Knobs | None = None
) -> tuple[AblationEffect, ...]:
    """Return the effects of all changed settings between and within the answer tables of a season.

    Two conditions are compared if they differ in exactly one setting; without `knobs`, the settings
    of each condition, every two conditions are compared. An effect is the later condition minus the
    earlier one. All p-values are corrected together (Holm).
    """
    effects: list[AblationEffect] = []
    for before, after in combinations(answer_tables, 2):
        differing = ["condition"]
        if knobs is not None:
            first, second = knobs[before.condition], knobs[after.condition]
            keys = sorted({*first, *second})
            differing = [key for key in keys if first.get(key) != second.get(key)]
        if len(differing) == 1:
            effects += _iter_effects_between_tables(after, before, differing[0])
    for answers in answer_tables:
        effects += _iter_effects_within_table(answers)
    return correct_effect_p_values(effects)


def compare_answer_tables(
    first: SeasonAnswerTable, second: SeasonAnswerTable, *, knob: str
) -> tuple[AblationEffect, ...]:
    """Return the paired differences between two answer tables; p-values are corrected together (Holm).

    The tables may belong to different seasons if they share clips and reviewers, for example this
    year's and last year's. `knob` names what differs between them.
    """
    return correct_effect_p_values(list(_iter_effects_between_tables(first, second, knob)))


def correct_effect_p_values(effects: Sequence[AblationEffect]) -> tuple[AblationEffect, ...]:
    """Return `effects` with their p-values corrected together (Holm)."""
    corrected = apply_holm_correction([effect.p for effect in effects])
    return tuple(replace(a, p_corrected=p) for a, p in zip(effects, corrected, strict=True))


def _iter_effects_between_tables(
    first: SeasonAnswerTable, second: SeasonAnswerTable, knob: str
) -> Iterator[AblationEffect]:
    index = {name: at for at, name in enumerate(second.clips.names)}
    shared = [(at, index[c]) for at, c in enumerate(first.clips.names) if c in index]
    left, right = np.array(shared, dtype=np.intp).reshape(-1, 2).T
    mask = (get_generated_clip_mask(first.clips) | get_real_clip_mask(first.clips))[left]
    left, right = left[mask], right[mask]
    names = [name for name in first.reviewers if name in second.reviewers]
    is_generated = get_generated_clip_mask(first.clips)[left]
    grids = []
    for answers, columns in ((first, left), (second, right)):
        grid = build_answer_grid(answers)[[answers.reviewers.index(name) for name in names]]
        is_right = (grid == ANSWERED_GENERATED) == get_generated_clip_mask(answers.clips)[
            np.newaxis
        ]
        # 1 right, 0 wrong, negative codes for missing or unreadable answers
        grids.append(np.where(grid < 0, grid, is_right).astype(np.int8)[:, columns])
    yield from _iter_paired_effects(
        (knob, first.condition, second.condition, BALANCED),
        (grids[0], grids[1]),
        scene=first.clips.scene[left].astype(np.int64),
        classes=[is_generated == half for half in (False, True)],
        names=names,
        floors=first.floors | second.floors,
    )


def _iter_effects_within_table(answers: SeasonAnswerTable) -> Iterator[AblationEffect]:
    """Yield the effects of clips to compare: a creator in two settings, or a control and the real clips."""
    clips, grid = answers.clips, build_answer_grid(answers)
    comparisons: list[tuple[tuple[str, str, str, str], Mask, Mask]] = []
    by_creator: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for number, name in enumerate(clips.creators):
        creator, _, setting = name.rpartition("/")
        if creator and setting in set(CreatorInput):
            by_creator[creator].append((name, number))
    for settings in by_creator.values():
        for (before, i), (after, j) in combinations(settings, 2):
            labels = (SETTING, after, before, CAUGHT)
            comparisons.append((labels, clips.creator == j, clips.creator == i))
    for number, name in enumerate(clips.controls):
        labels = (DEGRADATION, name, AS_FILMED, ALARMS)
        comparisons.append((labels, clips.control == number, get_real_clip_mask(clips)))

    for labels, first, second in comparisons:
        maps = []
        for chosen in (first, second):
            at = np.flatnonzero(chosen)[::-1]  # the first of several clips of a scene is taken
            maps.append(dict(zip(clips.scene[at].tolist(), at.tolist(), strict=True)))
        left, right = maps
        scenes = sorted(left.keys() & right.keys())
        yield from _iter_paired_effects(
            labels,
            (grid[:, [left[s] for s in scenes]], grid[:, [right[s] for s in scenes]]),
            scene=np.array(scenes, dtype=np.int64),
            classes=[np.ones(len(scenes), dtype=np.bool_)],
            names=answers.reviewers,
            floors=answers.floors,
        )


def _iter_paired_effects(
    labels: tuple[str, str, str, str],
    grids: tuple[Grid, Grid],
    *,
    scene: IntArray,
    classes: Sequence[Mask],
    names: Sequence[str],
    floors: Collection[str],
) -> Iterator[AblationEffect]:
    """Yield the effect for all reviewers without baselines, then for each of `names`.

    `labels` are the setting that differs, its first and second value, and the metric. `grids` have
    a row for each of `names` and a column for each pair: 1, 0 or negative codes. The means of the
    masks in `classes` are averaged.
    """
    setting, first, second, metric = labels

    def compute_mean_difference(sums: Array) -> Array:
        halves = np.split(sums, len(classes), axis=1)
        gaps: Array = np.mean([(h[:, 0] - h[:, 1]) / h[:, 2] for h in halves], axis=0)
        return PERCENT * gaps

    everybody = [n for n, name in enumerate(names) if name not in floors]
    for name, lines in ((EVERYBODY, everybody), *((name, [n]) for n, name in enumerate(names))):
        left, right = (grid[lines] for grid in grids)
        sent, read = (left != UNASKED) & (right != UNASKED), (left >= 0) & (right >= 0)
        _, at = np.nonzero(read)
        scores = (left[read].astype(float), right[read].astype(float), np.ones(len(at)))
        columns = [score * mask[at] for mask in classes for score in scores]
        difference, p = estimate_by_scene_jackknife(
            compute_mean_difference, sum_by_scene(scene[at], *columns), n=len(at), reach=PERCENT
        )
        yield AblationEffect(
            knob=setting,
            first=first,
            second=second,
            reviewer=name,
            figure=metric,
            difference=difference,
            p=p,
            n_pairs=len(at),
            n_left_out=int(sent.sum()) - len(at),
        )
