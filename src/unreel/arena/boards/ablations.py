"""Effect of one change with all else equal: audio, watermark, thinking, frames, prompt, setting, degradation.

Pairs are the same reviewer on the same clip under two conditions, or on two clips of one scene.
Only pairs with two readable answers count; the number of excluded pairs is reported.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np

from unreel.arena.answers.play import (
    SAID_GENERATED,
    UNASKED,
    AnswerTable,
    Grid,
    Mask,
    SeasonClips,
    build_answer_grid,
    select_generated_clips,
    select_real_clips,
)
from unreel.arena.boards.comparison import apply_holm, jackknife_difference, sum_by_scene
from unreel.core.estimate import Measured
from unreel.creators.contract import CreatorInput
from unreel.protocols.formulas import PERCENT
from unreel.stats.sample import Array, IntArray

EVERYBODY: Final = "all reviewers"
SETTING: Final = "generation setting"
DEGRADATION: Final = "degradation"
BALANCED: Final = "balanced"
CAUGHT: Final = "caught"
ALARMS: Final = "said generated"
AS_FILMED: Final = "as filmed"
_Told = tuple[str, str, str, str]
"""Knob, first, second, figure."""
Knobs = Mapping[str, Mapping[str, str]]
"""What each condition is set to, by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationEffect:
    """Difference in one metric: first minus second, in percentage points."""

    knob: str
    """What differs: `audio`, `sampling`, ..., `generation setting`, `degradation`."""
    first: str
    second: str
    reviewer: str
    """Title of a reviewer, or `EVERYBODY` for all except baselines."""
    figure: str
    difference: Measured
    p: float | None = None
    p_corrected: float | None = None
    """Among all differences that are shown, by Holm's correction."""
    n_pairs: int
    n_left_out: int
    """Pairs without two readable answers."""


def measure_ablations(
    plays: Sequence[AnswerTable], *, knobs: Knobs | None = None
) -> tuple[AblationEffect, ...]:
    """Return all paired differences between and within the answer tables of a season.

    Two conditions are compared if they differ in exactly one knob; without `knobs`, every two
    conditions are compared. A difference is the later condition minus the earlier condition.
    All p-values are corrected together (Holm).
    """
    found: list[AblationEffect] = []
    for before, after in combinations(plays, 2):
        knob = _find_changed_setting(before.condition, after.condition, knobs)
        if knob:
            found += _iter_effects_between_tables(after, before, knob)
    for play in plays:
        found += _iter_effects_within_table(play)
    return correct_effect_p_values(found)


def compare_answer_tables(
    first: AnswerTable, second: AnswerTable, *, knob: str
) -> tuple[AblationEffect, ...]:
    """Return the paired differences between two answer tables, corrected together (Holm).

    The tables may belong to different seasons if they share clips and reviewers. Examples: pairs
    against single clips, this year against last year.
    """
    return correct_effect_p_values(list(_iter_effects_between_tables(first, second, knob)))


def correct_effect_p_values(found: Sequence[AblationEffect]) -> tuple[AblationEffect, ...]:
    """Return the same differences with p-values corrected together (Holm)."""
    corrected = apply_holm([each.p for each in found])
    return tuple(replace(a, p_corrected=p) for a, p in zip(found, corrected, strict=True))


def _find_changed_setting(before: str, after: str, knobs: Knobs | None) -> str:
    if knobs is None:
        return "condition"
    one, other = knobs[before], knobs[after]
    differing = [key for key in sorted({*one, *other}) if one.get(key) != other.get(key)]
    return differing[0] if len(differing) == 1 else ""


def _iter_effects_between_tables(
    first: AnswerTable, second: AnswerTable, knob: str
) -> Iterator[AblationEffect]:
    place = {name: at for at, name in enumerate(second.lineup.clips)}
    shared = [(at, place[c]) for at, c in enumerate(first.lineup.clips) if c in place]
    ours, theirs = np.array(shared, dtype=np.intp).reshape(-1, 2).T
    counted = (select_generated_clips(first.lineup) | select_real_clips(first.lineup))[ours]
    ours, theirs = ours[counted], theirs[counted]
    names = [name for name in first.reviewers if name in second.reviewers]
    pairs = _AblationScores(
        told=(knob, first.condition, second.condition, BALANCED),
        first=_build_correctness_grid(first, names)[:, ours],
        second=_build_correctness_grid(second, names)[:, theirs],
        scene=first.lineup.scene[ours].astype(np.int64),
        side=select_generated_clips(first.lineup)[ours].astype(np.int64),
    )
    return pairs.ablations(names, first.floors | second.floors)


def _build_correctness_grid(play: AnswerTable, names: Sequence[str]) -> Grid:
    """Return 1 for each right answer and 0 for each wrong answer.

    A missing or unreadable answer keeps its code.
    """
    grid = build_answer_grid(play)[[play.reviewers.index(name) for name in names]]
    right = (grid == SAID_GENERATED) == select_generated_clips(play.lineup)[np.newaxis]
    return np.where(grid < 0, grid, right).astype(np.int8)


def _iter_effects_within_table(play: AnswerTable) -> Iterator[AblationEffect]:
    grid = build_answer_grid(play)
    for told, first, second in _iter_scene_comparisons(play.lineup):
        ours, theirs = (
            _map_scenes_to_clips(play.lineup, first),
            _map_scenes_to_clips(play.lineup, second),
        )
        scenes = sorted(ours.keys() & theirs.keys())
        pairs = _AblationScores(
            told=told,
            first=grid[:, [ours[scene] for scene in scenes]],
            second=grid[:, [theirs[scene] for scene in scenes]],
            scene=np.array(scenes, dtype=np.int64),
            side=np.zeros(len(scenes), dtype=np.int64),
        )
        yield from pairs.ablations(play.reviewers, play.floors)


def _map_scenes_to_clips(lineup: SeasonClips, chosen: Mask) -> dict[int, int]:
    """Return the index of the selected clip of each scene; the first if a scene has several."""
    places = np.flatnonzero(chosen)[::-1]
    return dict(zip(lineup.scene[places].tolist(), places.tolist(), strict=True))


def _iter_scene_comparisons(lineup: SeasonClips) -> Iterator[tuple[_Told, Mask, Mask]]:
    """Yield two sets of clips to compare within scenes.

    The sets are one creator's clips in two settings, or the clips of a control and the real clips.
    """
    by_creator: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for number, name in enumerate(lineup.creators):
        whole, _, setting = name.rpartition("/")
        if whole and setting in set(CreatorInput):
            by_creator[whole].append((name, number))
    for settings in by_creator.values():
        for (before, one), (after, other) in combinations(settings, 2):
            told = (SETTING, after, before, CAUGHT)
            yield told, lineup.creator == other, lineup.creator == one
    for number, name in enumerate(lineup.controls):
        told = (DEGRADATION, name, AS_FILMED, ALARMS)
        yield told, lineup.control == number, select_real_clips(lineup)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _AblationScores:
    """Two scores of each reviewer for each pair of clips: 1 or 0, or a negative code if unreadable.

    The negative codes are those of `AnswerTable.said`, and `UNASKED`.
    """

    told: _Told
    first: Grid
    second: Grid
    scene: IntArray
    side: IntArray
    """Which half of a balanced figure a pair counts for; 0 throughout where there are no halves."""

    def ablations(self, names: Sequence[str], floors: Collection[str]) -> Iterator[AblationEffect]:
        yield self._of(EVERYBODY, [n for n, name in enumerate(names) if name not in floors])
        for number, name in enumerate(names):
            yield self._of(name, [number])

    def _of(self, name: str, lines: list[int]) -> AblationEffect:
        ours, theirs = self.first[lines], self.second[lines]
        asked, read = (ours != UNASKED) & (theirs != UNASKED), (ours >= 0) & (theirs >= 0)
        _, at = np.nonzero(read)
        n_sides = 2 if self.told[3] == BALANCED else 1
        halves = [self.side[at] == half for half in range(n_sides)]
        scores = (ours[read], theirs[read], np.ones(len(at)))
        columns = [score * half for half in halves for score in scores]
        sums = sum_by_scene(self.scene[at], *columns)
        found = jackknife_difference(_compute_mean_gap, sums, n=len(at), reach=PERCENT)
        knob, first, second, figure = self.told
        return AblationEffect(
            knob=knob,
            first=first,
            second=second,
            reviewer=name,
            figure=figure,
            difference=found.value,
            p=found.p,
            n_pairs=len(at),
            n_left_out=int(asked.sum()) - len(at),
        )


def _compute_mean_gap(sums: Array) -> Array:
    """Compute first minus second in percentage points, averaged over the halves.

    Each half has three columns: first sum, second sum, count.
    """
    halves = np.split(sums, sums.shape[1] // 3, axis=1)
    gaps: Array = np.mean([(h[:, 0] - h[:, 1]) / h[:, 2] for h in halves], axis=0)
    return PERCENT * gaps
