"""Data that entrants do not know until the season ends: hidden scenes, and labels of canaries.

The hidden scenes depend on a secret that is stored with the season and never in its recipe. Its
hash is in the log before the season starts, so that the published secret proves later that the
choice did not depend on results. Another season's name hides other scenes under the same secret.
"""

import hashlib
import hmac
import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

import numpy as np

from unreel.arena.answers.answer_table import (
    SAID_GENERATED,
    Grid,
    Mask,
    SeasonAnswerTable,
    SeasonClips,
    build_answer_grid,
    get_generated_clip_mask,
    get_real_clip_mask,
    get_wrong_answer_mask,
)
from unreel.arena.boards.entrant_comparison import (
    CLEAR_BELOW,
    apply_holm_correction,
    estimate_by_scene_jackknife,
    estimate_percentage,
    estimate_percentage_by_jackknife,
    sum_by_scene,
)
from unreel.arena.season.recipe import SeasonRecipe
from unreel.arena.submission.season_log import (
    EntryState,
    SeasonLog,
    SeasonLogEvent,
    append_log_events,
)
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.estimate import Estimate, Measured
from unreel.core.output_files import OutputDirectory
from unreel.protocols.paper_formulas import PERCENT
from unreel.stats.copied_answers import hypergeometric_probabilities
from unreel.stats.row_sample import Array, IntArray

SECRET: Final = "holdout.key"  # noqa: S105  the name of its file
_SECRET_BYTES: Final = 32
_HIDDEN: Final = "hidden"
_CANARY: Final = "canary"


def read_or_create_holdout_secret(folder: Path) -> bytes:
    """Return the secret that chooses a season's hidden scenes; create it if it is missing.

    Raises:
        UnreadableSourceError: The file of the secret contains something else.
    """
    directory = OutputDirectory(folder)
    try:
        with directory.read(SECRET) as file:
            text = file.read(4 * _SECRET_BYTES)
    except FileNotFoundError:
        directory.write(SECRET, f"{secrets.token_hex(_SECRET_BYTES)}\n".encode())
        return read_or_create_holdout_secret(folder)
    try:
        return bytes.fromhex(text.decode("ascii").strip())
    except ValueError as error:
        problem, remedy = "no secret of a season", "Put the one back that the season began with"
        raise UnreadableSourceError(str(folder / SECRET), problem, remedy) from error


def hash_holdout_secret(secret: bytes) -> str:
    """Return the hash of the holdout secret, which is published before the season starts."""
    return hashlib.sha256(b"unreel arena hold-out\n" + secret).hexdigest()


def choose_hidden_scenes(
    scenes: Iterable[str], *, share: float, secret: bytes, season: str
) -> frozenset[str]:
    """Choose the fraction `share` of scenes to hide: one at least unless it is 0, never all."""
    order = _shuffle_scenes_secretly(scenes, _HIDDEN, secret=secret, season=season)
    if not 0 <= share < 1:
        msg = f"the fraction of hidden scenes must be between 0 and 1, got {share}. Use 0.2"
        raise InvalidValueError(msg)
    count = min(max(1, round(share * len(order))), len(order) - 1) if share and order else 0
    return frozenset(order[:count])


def choose_canary_scenes(
    scenes: Iterable[str], *, count: int, secret: bytes, season: str
) -> frozenset[str]:
    """Choose `count` scenes of a season, each of which gets a canary: a wrongly published clip."""
    return frozenset(
        _shuffle_scenes_secretly(scenes, _CANARY, secret=secret, season=season)[:count]
    )


def _shuffle_scenes_secretly(
    scenes: Iterable[str], what: str, *, secret: bytes, season: str
) -> list[str]:
    def drawn(scene: str) -> bytes:
        text = "\n".join((what, hashlib.sha256(season.encode()).hexdigest(), scene))
        return hmac.digest(secret, text.encode(), "sha256")

    return sorted(set(scenes), key=drawn)


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenSceneGap:
    """Comparison of one entrant on known and on hidden scenes, in percent."""

    name: str
    kind: Literal["reviewer", "creator"]
    known: Measured
    """Balanced accuracy of a reviewer, or fraction of answers that call a creator's clips real."""
    hidden: Measured
    gap: Measured
    """Difference known minus hidden: the advantage of an entrant that has seen the scenes."""
    p: float | None = None
    p_corrected: float | None = None
    flagged: bool = False
    """Whether the entrant is significantly better on known scenes."""


def compare_hidden_and_known_scenes(
    play: SeasonAnswerTable, hidden: Collection[str]
) -> tuple[HiddenSceneGap, ...]:
    """Compare every reviewer except baselines, and every creator, on hidden and on known scenes."""
    lineup, grid = play.lineup, build_answer_grid(play)
    secret = np.isin(lineup.scene, [n for n, s in enumerate(lineup.scenes) if s in hidden])
    right = ((grid >= 0) & ~get_wrong_answer_mask(lineup, grid)).astype(np.float64)
    gaps = []
    for number, name in enumerate(play.reviewers):
        if name not in play.floors:
            rows = _HoldoutScores.of(
                lineup, right[number : number + 1], grid[number : number + 1], secret
            )
            gaps.append(rows.gap(name, "reviewer"))
    ranked = [n for n, name in enumerate(play.reviewers) if name not in play.floors]
    passed = (grid[ranked] == 0).astype(np.float64)
    for number, name in enumerate(lineup.creators):
        mask = lineup.creator == number
        rows = _HoldoutScores.of(lineup, passed, np.where(mask, grid[ranked], -1), secret)
        gaps.append(rows.gap(name, "creator"))
    corrected = apply_holm_correction([gap.p for gap in gaps])
    return tuple(_flag_hidden_scene_gap(gap, p) for gap, p in zip(gaps, corrected, strict=True))


def _flag_hidden_scene_gap(result: HiddenSceneGap, p: float | None) -> HiddenSceneGap:
    better = isinstance(result.gap, Estimate) and result.gap.low > 0
    return replace(result, p_corrected=p, flagged=better and p is not None and p <= CLEAR_BELOW)


@dataclass(frozen=True, slots=True, eq=False)
class _HoldoutScores:
    """Scores of readable answers as columns: score, scene, clip label, and whether it is hidden."""

    score: Array
    scene: IntArray
    made: Mask
    hidden: Mask

    @classmethod
    def of(cls, lineup: SeasonClips, score: Array, grid: Grid, hidden: Mask) -> "_HoldoutScores":
        read = (grid >= 0) & (get_generated_clip_mask(lineup) | get_real_clip_mask(lineup))
        at = np.nonzero(read)[1]
        scene = lineup.scene[at].astype(np.int64)
        return cls(score[read], scene, get_generated_clip_mask(lineup)[at], hidden[at])

    def gap(self, name: str, kind: Literal["reviewer", "creator"]) -> HiddenSceneGap:
        sides = (self.made, ~self.made) if kind == "reviewer" else (self.made,)
        halves = [[side & half for side in sides] for half in (~self.hidden, self.hidden)]
        n = len(self.scene)
        tested = estimate_by_scene_jackknife(
            _compute_hidden_difference, self._sums(*halves[0], *halves[1]), n=n, reach=PERCENT
        )
        known, hidden = (self._share(half) for half in halves)
        return HiddenSceneGap(
            name=name, kind=kind, known=known, hidden=hidden, gap=tested.value, p=tested.p
        )

    def _share(self, parts: list[Mask]) -> Measured:
        at = np.logical_or.reduce(parts)
        rows = _HoldoutScores(self.score[at], self.scene[at], self.made[at], self.hidden[at])
        return estimate_percentage_by_jackknife(
            _compute_balanced_percentage, rows._sums(*(p[at] for p in parts)), n=int(at.sum())
        )

    def _sums(self, *parts: Mask) -> Array:
        columns = [c.astype(np.float64) for part in parts for c in (self.score * part, part)]
        return sum_by_scene(self.scene, *columns)


def _compute_balanced_percentage(sums: Array) -> Array:
    """Compute the mean score over clip classes in percent; `sums` has sum and count per class."""
    shares: Array = PERCENT * np.mean(sums[:, 0::2] / sums[:, 1::2], axis=1)
    return shares


def _compute_hidden_difference(sums: Array) -> Array:
    known, hidden = np.split(sums, 2, axis=1)
    return _compute_balanced_percentage(known) - _compute_balanced_percentage(hidden)


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryTestResult:
    """Test of whether a reviewer repeats the wrong published labels of canaries."""

    reviewer: str
    followed: Measured
    """Percentage of the reviewer's answers that repeat the published, wrong labels."""
    expected: Measured
    """Percentage of errors on all other clips with the same true labels, for comparison with `followed`."""
    p: float | None = None
    p_corrected: float | None = None
    flagged: bool = False
    """Whether the reviewer repeats published labels more often than its own errors explain."""


def measure_canary_answers(
    play: SeasonAnswerTable, canaries: Mapping[str, int]
) -> tuple[CanaryTestResult, ...]:
    """Measure how often each reviewer repeats the wrong published labels of `canaries`.

    `canaries` maps the name of each clip to its wrong published label (`SAID_REAL`, ...). A
    reviewer that judges the clip errs on canaries as often as on other clips with the same true
    label. A reviewer that knows the published labels errs on canaries more often than its overall
    error rate explains (Fisher's exact test).
    """
    lineup, grid = play.lineup, build_answer_grid(play)
    chosen = np.array([name in canaries for name in lineup.clips])
    labels = np.array([canaries.get(name, 0) for name in lineup.clips])
    if (chosen & ((labels == SAID_GENERATED) == get_generated_clip_mask(lineup))).any():
        msg = "the published label of a canary must be wrong. Publish the other side"
        raise InvalidValueError(msg)
    like = chosen | (
        np.isin(get_generated_clip_mask(lineup), get_generated_clip_mask(lineup)[chosen]) & ~chosen
    )
    errs = get_wrong_answer_mask(lineup, grid)
    results = [
        _build_canary_test_result(name, errs[n], grid[n] >= 0, (chosen, like & ~chosen))
        for n, name in enumerate(play.reviewers)
    ]
    corrected = apply_holm_correction([result.p for result in results])
    return tuple(
        replace(result, p_corrected=p, flagged=p is not None and p <= CLEAR_BELOW)
        for result, p in zip(results, corrected, strict=True)
    )


def _build_canary_test_result(
    name: str, errs: Mask, read: Mask, clips: tuple[Mask, Mask]
) -> CanaryTestResult:
    traps, others = (mask & read for mask in clips)
    n_traps, n_others = int(traps.sum()), int(others.sum())
    fell, erred = int((errs & traps).sum()), int((errs & others).sum())
    p = None
    if n_traps and n_others:
        p = min(
            1.0,
            float(
                hypergeometric_probabilities(n_traps + n_others, fell + erred, n_traps)[fell:].sum()
            ),
        )
    return CanaryTestResult(
        reviewer=name,
        followed=estimate_percentage(fell, n_traps),
        expected=estimate_percentage(erred, n_others),
        p=p,
    )


PROMISE: Final = "the secret of the hold-out has the hash"


def find_hidden_scenes(folder: Path, recipe: SeasonRecipe, scenes: Iterable[str]) -> frozenset[str]:
    """Return the hidden scenes of the season at `folder`; an empty set if the recipe hides none."""
    share = recipe.holdout.share
    if not share:
        return frozenset()
    return choose_hidden_scenes(
        scenes, share=share, secret=read_or_create_holdout_secret(folder), season=recipe.name
    )


def find_canary_clips(folder: Path, recipe: SeasonRecipe, lineup: SeasonClips) -> Mapping[str, int]:
    """Return real clips outside hidden scenes that are published as generated; empty without canaries."""
    count = recipe.holdout.canaries
    if not count:
        return {}
    known = sorted(set(lineup.scenes) - find_hidden_scenes(folder, recipe, lineup.scenes))
    secret = read_or_create_holdout_secret(folder)
    chosen = choose_canary_scenes(known, count=count, secret=secret, season=recipe.name)
    filmed = zip(lineup.clips, lineup.scene, get_real_clip_mask(lineup), strict=True)
    return {
        clip: SAID_GENERATED
        for clip, scene, is_real in filmed
        if is_real and lineup.scenes[scene] in chosen
    }


def log_holdout_secret_hash(folder: Path, recipe: SeasonRecipe, *, at_us: int) -> None:
    """Log the holdout secret's hash once before the run, if there are hidden scenes or canaries."""
    if not recipe.holdout.share and not recipe.holdout.canaries:
        return
    text = f"{PROMISE} {hash_holdout_secret(read_or_create_holdout_secret(folder))}"

    def promised(history: SeasonLog) -> list[SeasonLogEvent]:
        if any(text in event.reasons for event in history.events):
            return []
        event = SeasonLogEvent(
            entry=recipe.name, state=EntryState.NOTED, at_us=at_us, kind="season", reasons=(text,)
        )
        return [event]

    append_log_events(folder, promised)
