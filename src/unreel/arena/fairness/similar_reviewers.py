"""Search for reviewers with suspiciously similar errors: copies, or one model under two names.

Two good reviewers agree because both are right, and two independent reviewers both err on hard
clips. Therefore only errors are compared, within strata of clips with the same label and a
similar error rate of the *other* reviewers. Within a stratum, the errors of two independent
reviewers coincide as often as two random samples (the exact conditional test of Mantel and
Haenszel). A pair is suspected if chance is excluded, by Holm's correction over all pairs, and
if most of the pair's errors are the same. Hard clips alone never make most errors the same.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from unreel.arena.answers.answer_table import (
    Grid,
    Mask,
    SeasonAnswerTable,
    SeasonClips,
    build_answer_grid,
    get_generated_clip_mask,
    get_wrong_answer_mask,
)
from unreel.arena.boards.entrant_comparison import estimate_percentage
from unreel.core.estimate import Measured
from unreel.stats.copied_answers import hypergeometric_probabilities
from unreel.stats.paired_differences import adjust_p_values_by_holm
from unreel.stats.row_sample import Array, IntArray

LEAST_SHARED: Final = 0.8
"""Minimum fraction of shared errors among the clips on which at least one of two reviewers errs."""
LEAST_ERRORS: Final = 5
"""Minimum number of shared errors of a suspected pair, whatever the p-value."""
ALARM_BELOW: Final = 0.01
_STRATA: Final = 5
"""Number of strata by the fraction of other reviewers that err, for each label."""
_MOST_PAIRS: Final = 20_000
"""Maximum number of pairs in all simulated seasons, above `_FEWEST_SEASONS` seasons."""
_FEWEST_SEASONS: Final = 20
_MOST_SEASONS: Final = 200
_PULL: Final = 1.0
"""Number of pseudo-answers added to each count of a simulation, so that no probability is 0 or 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerPairSimilarity:
    """Similarity of two reviewers: the errors that they share, and whether a copy is suspected."""

    first: str
    second: str
    n_common: int
    """Number of clips with readable answers of both."""
    agreement: Measured
    """Percentage of these clips with equal answers."""
    shared_errors: Measured
    """Percentage of clips on which both err, among those on which at least one errs."""
    expected_shared: float
    """Number of shared errors expected by chance, given the other reviewers' errors on each clip."""
    n_shared: int
    p_corrected: float
    """Probability of at least as many shared errors by chance, corrected for all pairs (Holm)."""
    suspected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerSimilarities:
    """Similarity of every two reviewers of a season, and the rate of false alarms."""

    pairs: tuple[ReviewerPairSimilarity, ...]
    """Pairs of reviewers, most similar first."""
    false_alarms: Measured
    """Percentage of simulated seasons of this size, with independent reviewers, in which any pair is suspected."""

    @property
    def suspected(self) -> tuple[ReviewerPairSimilarity, ...]:
        """Return the pairs of reviewers that share more errors than chance and hard clips explain."""
        return tuple(pair for pair in self.pairs if pair.suspected)


def compare_reviewer_errors(play: SeasonAnswerTable, *, seed: int) -> ReviewerSimilarities:
    """Compare the errors of every two reviewers to find copies; baselines are excluded."""
    rows = [n for n, name in enumerate(play.reviewers) if name not in play.floors]
    names = [play.reviewers[n] for n in rows]
    grid = build_answer_grid(play)[rows]
    overlaps = _measure_error_overlaps(
        get_wrong_answer_mask(play.lineup, grid), grid >= 0, get_generated_clip_mask(play.lineup)
    )
    pairs = [m.tell(both, p) for (m, p), both in zip(overlaps, combinations(names, 2), strict=True)]
    ranked = sorted(pairs, key=lambda pair: (pair.p_corrected, -pair.n_shared))
    alarms = _estimate_false_alarm_rate(grid, play.lineup, seed=seed)
    return ReviewerSimilarities(pairs=tuple(ranked), false_alarms=alarms)


def _measure_error_overlaps(
    errs: Mask, read: Mask, made: Mask
) -> "list[tuple[_ErrorOverlap, float]]":
    """Return the error overlap of every two reviewers, with p-values corrected for all pairs (Holm)."""
    overlaps = [
        _ErrorOverlap.of(errs, read, made, pair) for pair in combinations(range(len(errs)), 2)
    ]
    return list(
        zip(overlaps, adjust_p_values_by_holm([meeting.p for meeting in overlaps]), strict=True)
    )


@dataclass(frozen=True, slots=True)
class _ErrorOverlap:
    """Numbers of errors that two reviewers share, and the probability of this number by chance."""

    n_common: int
    n_same: int
    n_shared: int
    n_either: int
    expected: float
    p: float

    @classmethod
    def of(cls, errs: Mask, read: Mask, made: Mask, pair: tuple[int, int]) -> "_ErrorOverlap":
        i, j = pair
        mask = read[i] & read[j]
        left, right = errs[i, mask], errs[j, mask]
        n_others = read[:, mask].sum(axis=0) - 2
        n_erring = errs[:, mask].sum(axis=0) - left - right
        strata = _compute_clip_strata(n_erring, n_others, made[mask])
        expected, p = _compute_shared_error_chance(left, right, strata)
        return cls(
            n_common=int(mask.sum()),
            n_same=int((left == right).sum()),
            n_shared=int((left & right).sum()),
            n_either=int((left | right).sum()),
            expected=expected,
            p=p,
        )

    def is_suspected(self, p_corrected: float) -> bool:
        """Return whether the two reviewers share more errors than hard clips and chance explain."""
        strange = self.n_shared >= max(LEAST_ERRORS, LEAST_SHARED * self.n_either)
        return strange and p_corrected <= ALARM_BELOW

    def tell(self, names: tuple[str, str], p_corrected: float) -> ReviewerPairSimilarity:
        return ReviewerPairSimilarity(
            first=names[0],
            second=names[1],
            n_common=self.n_common,
            agreement=estimate_percentage(self.n_same, self.n_common),
            shared_errors=estimate_percentage(self.n_shared, self.n_either),
            expected_shared=self.expected,
            n_shared=self.n_shared,
            p_corrected=p_corrected,
            suspected=self.is_suspected(p_corrected),
        )


def _compute_clip_strata(n_erring: IntArray, n_others: IntArray, made: Mask) -> IntArray:
    """Return each clip's stratum: label, and fifth by the fraction of other reviewers that err."""
    hard = np.where(n_others > 0, n_erring / np.maximum(n_others, 1), 0.5)
    order = np.argsort(np.argsort(hard, kind="stable"), kind="stable")
    # Equally hard clips belong to the same stratum.
    _, same = np.unique(hard, return_inverse=True)
    first = np.full(same.max(initial=0) + 1, len(hard))
    np.minimum.at(first, same, order)
    fifth = first[same] * _STRATA // max(1, len(hard))
    strata: IntArray = 2 * fifth + made
    return strata


def _compute_shared_error_chance(left: Mask, right: Mask, strata: IntArray) -> tuple[float, float]:
    """Return shared errors expected by chance and an exact p-value, within `strata`."""
    kinds = int(strata.max(initial=0)) + 1
    sizes, mine, yours = (
        np.bincount(strata, weights=column, minlength=kinds)
        for column in (np.ones(len(left)), left, right)
    )
    expected = float((mine * yours / np.maximum(sizes, 1)).sum())
    shared = int((left & right).sum())
    if shared <= expected:
        return expected, 1.0
    total = np.ones(1)
    for n, a, b in zip(sizes.astype(int), mine.astype(int), yours.astype(int), strict=True):
        if a and b:
            total = np.convolve(total, hypergeometric_probabilities(n, a, b))
    return expected, min(1.0, float(total[shared:].sum()))


def _estimate_false_alarm_rate(grid: Grid, lineup: SeasonClips, *, seed: int) -> Measured:
    """Estimate the percentage of like seasons, simulated, in which independent reviewers look copied."""
    n_pairs = len(grid) * (len(grid) - 1) // 2
    seasons = min(_MOST_SEASONS, max(_FEWEST_SEASONS, _MOST_PAIRS // max(1, n_pairs)))
    chances, read, made = (
        _estimate_error_probabilities(grid, lineup),
        grid >= 0,
        get_generated_clip_mask(lineup),
    )
    rng = np.random.default_rng(seed)
    alarms = 0
    for _ in range(seasons):
        errs = (rng.random(grid.shape) < chances) & read
        if _has_suspicious_pair(errs, read):
            alarms += any(
                meeting.is_suspected(p) for meeting, p in _measure_error_overlaps(errs, read, made)
            )
    return estimate_percentage(alarms, seasons)


def _has_suspicious_pair(errs: Mask, read: Mask) -> bool:
    """Return whether any two reviewers share most of their errors: a fast test before the exact one."""
    # No matrix product: BLAS threads slow other processes, see `stats.row_sample.weighted_sum`.
    err, reads = errs.astype(np.float32), read.astype(np.float32)
    shared, met = np.einsum("ic,jc->ij", err, err), np.einsum("ic,jc->ij", err, reads)
    strange = shared >= np.maximum(LEAST_ERRORS, LEAST_SHARED * (met + met.T - shared))
    return bool(np.triu(strange, 1).any())


def _estimate_error_probabilities(grid: Grid, lineup: SeasonClips) -> Array:
    """Return the probability that each reviewer (rows) errs on each clip (columns).

    Its log-odds are those of the reviewer on the clip's label, plus those of the clip, minus those of
    all reviewers on all clips of that label.
    """
    errs, read = get_wrong_answer_mask(lineup, grid), grid >= 0
    odds = np.zeros(grid.shape)
    for mask in (get_generated_clip_mask(lineup), ~get_generated_clip_mask(lineup)):
        if not mask.any():
            continue
        base = _compute_log_odds(errs[:, mask].sum(), read[:, mask].sum())
        reviewer = _compute_log_odds(errs[:, mask].sum(axis=1), read[:, mask].sum(axis=1))
        clip = _compute_log_odds(errs[:, mask].sum(axis=0), read[:, mask].sum(axis=0))
        odds[:, mask] = reviewer[:, np.newaxis] + clip[np.newaxis] - base
    chances: Array = 1 / (1 + np.exp(-odds))
    return chances


def _compute_log_odds(errors: "IntArray | int", answers: "IntArray | int") -> Array:
    errors, answers = np.asarray(errors), np.asarray(answers)
    odds: Array = np.log((errors + _PULL / 2) / (answers - errors + _PULL / 2))
    return odds
