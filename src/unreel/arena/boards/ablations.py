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
    SAID_GENERATED,
    SAID_REAL,
    UNASKED,
    Grid,
    Mask,
    SeasonAnswerTable,
    SeasonClips,
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
    grid = build_answer_grid(answers)
    generated, filmed = get_generated_clip_mask(answers.clips), get_real_clip_mask(answers.clips)
    biases = []
    for name, line in zip(answers.reviewers, grid, strict=True):
        read = (line >= 0) & (generated | filmed)
        says_real = line[read] == SAID_REAL
        sides = generated[read], filmed[read]
        columns = [column.astype(np.float64) for s in sides for column in (says_real & s, s)]
        sums = sum_by_scene(answers.clips.scene[read].astype(np.int64), *columns)
        n = int(read.sum())
        biases.append(
            ReviewerBias(
                condition=answers.condition,
                reviewer=name,
                said_real=estimate_percentage_by_jackknife(_compute_balanced_real_rate, sums, n=n),
                sensitivity=estimate_by_scene_jackknife(_compute_sensitivity, sums, n=n).value,
                criterion=estimate_by_scene_jackknife(_compute_response_criterion, sums, n=n).value,
            )
        )
    return tuple(biases)


def _compute_balanced_real_rate(sums: Array) -> Array:
    proportions: Array = PERCENT * (sums[:, 0] / sums[:, 1] + sums[:, 2] / sums[:, 3]) / 2
    return proportions


def _compute_sensitivity(sums: Array) -> Array:
    missed, passed = _compute_normal_quantiles(sums)
    return passed - missed


def _compute_response_criterion(sums: Array) -> Array:
    missed, passed = _compute_normal_quantiles(sums)
    middle: Array = (missed + passed) / 2
    return middle


def _compute_normal_quantiles(sums: Array) -> tuple[Array, Array]:
    """Compute the normal quantiles of the rates at which generated and real clips are called real."""
    from scipy.special import ndtri

    totals = np.where(sums[:, 1::2] > 0, sums[:, 1::2], np.nan)
    proportions = (sums[:, 0::2] + _HALF) / (totals + 2 * _HALF)
    missed, passed = ndtri(proportions).T
    return missed, passed


EVERYBODY = "all reviewers"
SETTING = "generation setting"
DEGRADATION = "degradation"
BALANCED = "balanced"
CAUGHT = "caught"
ALARMS = "said generated"
AS_FILMED = "as filmed"
_Told = tuple[str, str, str, str]
"""Setting that differs, its first and its second value, and the metric."""
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
        knob = _find_changed_setting(before.condition, after.condition, knobs)
        if knob:
            effects += _iter_effects_between_tables(after, before, knob)
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


def _find_changed_setting(before: str, after: str, knobs: Knobs | None) -> str:
    if knobs is None:
        return "condition"
    first, second = knobs[before], knobs[after]
    differing = [key for key in sorted({*first, *second}) if first.get(key) != second.get(key)]
    return differing[0] if len(differing) == 1 else ""


def _iter_effects_between_tables(
    first: SeasonAnswerTable, second: SeasonAnswerTable, knob: str
) -> Iterator[AblationEffect]:
    index = {name: at for at, name in enumerate(second.clips.names)}
    shared = [(at, index[c]) for at, c in enumerate(first.clips.names) if c in index]
    left, right = np.array(shared, dtype=np.intp).reshape(-1, 2).T
    mask = (get_generated_clip_mask(first.clips) | get_real_clip_mask(first.clips))[left]
    left, right = left[mask], right[mask]
    names = [name for name in first.reviewers if name in second.reviewers]
    pairs = _PairedReviewerScores(
        told=(knob, first.condition, second.condition, BALANCED),
        first=_build_correctness_grid(first, names)[:, left],
        second=_build_correctness_grid(second, names)[:, right],
        scene=first.clips.scene[left].astype(np.int64),
        side=get_generated_clip_mask(first.clips)[left].astype(np.int64),
    )
    return pairs.ablations(names, first.floors | second.floors)


def _build_correctness_grid(answers: SeasonAnswerTable, names: Sequence[str]) -> Grid:
    """Return reviewers `names` by clips: 1 right, 0 wrong, negative codes if missing or unreadable."""
    grid = build_answer_grid(answers)[[answers.reviewers.index(name) for name in names]]
    right = (grid == SAID_GENERATED) == get_generated_clip_mask(answers.clips)[np.newaxis]
    return np.where(grid < 0, grid, right).astype(np.int8)


def _iter_effects_within_table(answers: SeasonAnswerTable) -> Iterator[AblationEffect]:
    grid = build_answer_grid(answers)
    for labels, first, second in _iter_scene_comparisons(answers.clips):
        left, right = (
            _map_scenes_to_clips(answers.clips, first),
            _map_scenes_to_clips(answers.clips, second),
        )
        scenes = sorted(left.keys() & right.keys())
        pairs = _PairedReviewerScores(
            told=labels,
            first=grid[:, [left[scene] for scene in scenes]],
            second=grid[:, [right[scene] for scene in scenes]],
            scene=np.array(scenes, dtype=np.int64),
            side=np.zeros(len(scenes), dtype=np.int64),
        )
        yield from pairs.ablations(answers.reviewers, answers.floors)


def _map_scenes_to_clips(lineup: SeasonClips, chosen: Mask) -> dict[int, int]:
    """Return, for each scene index, the index of its clip in the mask `chosen`; the first of several."""
    clips = np.flatnonzero(chosen)[::-1]
    return dict(zip(lineup.scene[clips].tolist(), clips.tolist(), strict=True))


def _iter_scene_comparisons(clips: SeasonClips) -> Iterator[tuple[_Told, Mask, Mask]]:
    """Yield described clip masks to compare: a creator in two settings, or a control and real clips."""
    by_creator: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for number, name in enumerate(clips.creators):
        creator, _, setting = name.rpartition("/")
        if creator and setting in set(CreatorInput):
            by_creator[creator].append((name, number))
    for settings in by_creator.values():
        for (before, i), (after, j) in combinations(settings, 2):
            labels = (SETTING, after, before, CAUGHT)
            yield labels, clips.creator == j, clips.creator == i
    for number, name in enumerate(clips.controls):
        labels = (DEGRADATION, name, AS_FILMED, ALARMS)
        yield labels, clips.control == number, get_real_clip_mask(clips)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _PairedReviewerScores:
    """Reviewer scores of answer pairs: 1, 0, or negative codes of `SeasonAnswerTable.said`, `UNASKED`."""

    told: _Told
    first: Grid
    second: Grid
    scene: IntArray
    side: IntArray
    """Clip class of each pair: 1 generated, 0 real; always 0 if the metric is not balanced."""

    def ablations(self, names: Sequence[str], floors: Collection[str]) -> Iterator[AblationEffect]:
        yield self._of(EVERYBODY, [n for n, name in enumerate(names) if name not in floors])
        for number, name in enumerate(names):
            yield self._of(name, [number])

    def _of(self, name: str, lines: list[int]) -> AblationEffect:
        left, right = self.first[lines], self.second[lines]
        asked, read = (left != UNASKED) & (right != UNASKED), (left >= 0) & (right >= 0)
        _, at = np.nonzero(read)
        n_sides = 2 if self.told[3] == BALANCED else 1
        halves = [self.side[at] == half for half in range(n_sides)]
        scores = (left[read], right[read], np.ones(len(at)))
        columns = [score * half for half in halves for score in scores]
        sums = sum_by_scene(self.scene[at], *columns)
        result = estimate_by_scene_jackknife(
            _compute_mean_difference, sums, n=len(at), reach=PERCENT
        )
        knob, first, second, metric = self.told
        return AblationEffect(
            knob=knob,
            first=first,
            second=second,
            reviewer=name,
            figure=metric,
            difference=result.value,
            p=result.p,
            n_pairs=len(at),
            n_left_out=int(asked.sum()) - len(at),
        )


def _compute_mean_difference(sums: Array) -> Array:
    """Compute the mean score of the first answers minus that of the second, in percentage points.

    `sums` has three columns (first sum, second sum, count) for each clip class; the differences are
    averaged over the classes.
    """
    halves = np.split(sums, sums.shape[1] // 3, axis=1)
    gaps: Array = np.mean([(h[:, 0] - h[:, 1]) / h[:, 2] for h in halves], axis=0)
    return PERCENT * gaps
