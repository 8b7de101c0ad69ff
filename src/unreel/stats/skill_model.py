"""Skill model: separate the ability of reviewers from the realism of creators.

Raw means mix the two. A reviewer `i` calls a clip generated with probability
g + (1 - 2g) / (1 + exp(-e)). For a real clip e = bias_i; for a clip of creator `j`
e = bias_i + ability_i - realism_j; nuisance variables of the clip may be added. This is signal
detection in its logistic form: ability is the discrimination, bias the criterion. The guess
rate g allows for a few random answers: 200 g of 100 answers. A normal prior around 0 keeps the
terms of reviewers without errors finite. Realism has mean 0 over the creators, so ability
refers to a creator of mean realism.

Intervals use the larger of two variances: the sandwich variance by scene, because answers about
one scene are correlated, and the variance from the curvature of the likelihood, which covers a
reviewer without errors.

A reviewer whose answers do not depend on the clip has no ability, although the prior and the
differences between creators would give it one. The ability is unmeasured if one probability for
every clip explains the reviewer's answers better.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.stats.resampling import compute_min_clusters
from unreel.stats.row_sample import Array, BoolArray, IntArray
from unreel.stats.skill_likelihood import (
    REAL,
    EqualProbabilityCounts,
    SkillAnswerColumns,
    SkillTermLayout,
)

FEW_SLIPS = 0.02
"""Prior mean of the guess rate; small rates are more likely than large ones."""
MAX_GUESS = 0.03
"""Maximum guess rate. A larger one would absorb differences between reviewers, as in Video Reality
Test's counts, where some recognise Sora's watermark and some do not.
"""
_COIN = 0.5
SPREAD = 3.0
"""Prior standard deviation of every term: 95 % lie within 6 log-odds."""
_NEARLY_CONSTANT = 2 * MAX_GUESS
"""Maximum fraction of the rarer answer that slips alone can cause, as the mean over real and generated clips."""
_CLEAR_GAIN = 3.3
"""Minimum gain in log-likelihood of one more term; chance alone gives as much in 1 % of cases."""
_CLEAR_LOSS = -1.0
"""Minimum gain over one chance for every clip, which the terms can nearly imitate if creators are alike."""
_MIN_CHANCE = 1e-12
_STEPS = 200
_TOLERANCE = 1e-8
_HALVINGS = 30


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SkillModelTerms:
    """Terms of the skill model, or their standard errors, by kind."""

    bias: Array
    ability: Array
    realism: Array
    sway: Array
    """Coefficient of each nuisance variable."""

    @classmethod
    def of(cls, vector: Array, layout: SkillTermLayout) -> "SkillModelTerms":
        """Split a vector of all terms of the skill model into its kinds."""
        return cls(**{name: vector[part] for name, part in layout.parts.items()})


@dataclass(frozen=True, slots=True, eq=False)
class SkillModelFit:
    """Most likely terms of the skill model, with their standard errors."""

    terms: SkillModelTerms
    errors: SkillModelTerms
    blind: BoolArray
    """Whether one probability for every clip explains the answers of each reviewer better."""


@dataclass(frozen=True, slots=True, eq=False)
class SkillTermEstimates:
    """Estimate of each term of the skill model with its interval, or the reason why it has none."""

    bias: list[Measured]
    ability: list[Measured]
    realism: list[Measured]
    sway: list[Measured]


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillModelPrior:
    """Prior assumptions of the skill model: guess rate and spread of the terms."""

    guess: float | None = None
    """Guess rate; `None` to fit it to the answers."""
    spread: float = SPREAD

    def __post_init__(self) -> None:
        if not (0 <= (self.guess or 0) < _COIN and self.spread > 0):
            raise InvalidValueError(
                f"guess must lie in 0..{_COIN} and spread above 0, got {self.guess} and {self.spread}. "
                "Use the defaults"
            )


_DEFAULT = SkillModelPrior()


def fit_skill_terms(
    answers: SkillAnswerColumns,
    layout: SkillTermLayout,
    *,
    model: SkillModelPrior = _DEFAULT,
    anchors: BoolArray | None = None,
) -> SkillModelFit:
    """Fit the most likely terms; realism has mean 0 over `anchors`, by default all creators."""
    rows = EqualProbabilityCounts.of(answers, layout)
    guess = _estimate_guess_rate(answers, layout, model)
    terms, _ = _fit_terms(rows, guess, model.spread)
    chosen = np.ones(layout.n_creators, dtype=np.bool_) if anchors is None else anchors
    centre = _build_centring_matrix(layout, chosen)
    error = np.sqrt(
        np.maximum(
            _estimate_term_variance(answers, rows, terms, centre, guess=guess, model=model), 0.0
        )
    )
    blind = _detect_blind_reviewers(rows, rows.likelihoods(terms, guess))
    return SkillModelFit(
        SkillModelTerms.of(centre @ terms, layout), SkillModelTerms.of(error, layout), blind
    )


def estimate_skill_intervals(
    answers: SkillAnswerColumns,
    layout: SkillTermLayout,
    *,
    model: SkillModelPrior = _DEFAULT,
    level: float = 0.95,
) -> SkillTermEstimates:
    """Estimate terms with intervals by scene; n counts informing answers; unconnected: unmeasured."""
    from scipy.special import stdtrit

    n_scenes = int((np.bincount(answers.scene) > 0).sum())
    if n_scenes < compute_min_clusters(level):
        few: Measured = Unmeasured(
            f"an interval at level {level:g} needs {compute_min_clusters(level)} scenes, here are {n_scenes}"
        )
        return SkillTermEstimates(*([few] * size for size in layout.sizes))
    ties = _ConnectedEntrants.of(answers, layout)
    fit = fit_skill_terms(answers, layout, model=model, anchors=ties.creators)
    quantile = -float(stdtrit(n_scenes - 1, (1 - level) / 2))
    n_all = np.full(layout.n_nuisances, len(answers.scene))

    def around(name: str, counts: IntArray, reasons: Sequence[str]) -> list[Measured]:
        columns = (getattr(fit.terms, name), quantile * getattr(fit.errors, name), counts, reasons)
        return [
            Unmeasured(reason)
            if reason
            else _build_symmetric_estimate(value, half_width, (int(n), n_scenes), level)
            for value, half_width, n, reason in zip(*columns, strict=True)
        ]

    return SkillTermEstimates(
        around("bias", ties.n_real, ties.why_bias()),
        around("ability", ties.n_real + ties.n_made, ties.why_ability(fit.blind)),
        around("realism", ties.n_about, ties.why_realism()),
        around("sway", n_all, [""] * layout.n_nuisances),
    )


def _build_symmetric_estimate(
    value: float, half_width: float, counts: tuple[int, int], level: float
) -> Estimate:
    return Estimate(
        value=float(value),
        low=float(value - half_width),
        high=float(value + half_width),
        n=counts[0],
        n_clusters=counts[1],
        level=level,
    )


def _estimate_guess_rate(
    answers: SkillAnswerColumns, layout: SkillTermLayout, model: SkillModelPrior
) -> float:
    """Return the most likely guess rate, fitted without nuisance variables, which hardly affect it."""
    from scipy.optimize import minimize_scalar

    if model.guess is not None:
        return model.guess
    bare = EqualProbabilityCounts.of(answers, replace(layout, n_nuisances=0))

    mode = np.zeros(bare.shape.n_terms)

    def unlikely(guess: float) -> float:
        mode[:], height = _fit_terms(bare, guess, model.spread, start=mode)
        return guess / FEW_SLIPS - height

    without = unlikely(0.0)
    optimum = minimize_scalar(
        unlikely, bounds=(0.0, MAX_GUESS), method="bounded", options={"xatol": 1e-4}
    )
    return float(optimum.x) if optimum.fun < without else 0.0


def _fit_terms(
    counts: EqualProbabilityCounts, guess: float, spread: float, *, start: Array | None = None
) -> tuple[Array, float]:
    """Return the most likely terms, and their log-likelihood including the prior.

    The method is Fisher scoring. A step is halved until the likelihood increases; the prior makes
    every step solvable.
    """
    pull = 1 / spread**2
    terms = np.zeros(counts.shape.n_terms) if start is None else start.copy()
    height = counts.likelihood(terms, guess) - pull * float(terms @ terms) / 2
    for _ in range(_STEPS):
        score, curvature = counts.weigh(terms, guess)
        slope = counts.slope(score) - pull * terms
        curve = counts.curve(curvature) + pull * np.eye(len(terms))
        step = np.linalg.solve(curve, slope)
        for _ in range(_HALVINGS):
            higher = terms + step
            reached = counts.likelihood(higher, guess) - pull * float(higher @ higher) / 2
            if reached >= height:
                terms, height = higher, reached
                break
            step = step / 2
        if np.abs(step).max(initial=0.0) < _TOLERANCE:
            break
    return terms, height


def _detect_blind_reviewers(counts: EqualProbabilityCounts, likelihoods: Array) -> BoolArray:
    """Return for each reviewer whether one probability for all clips explains its answers better."""
    size = counts.shape.n_reviewers

    def count(column: Array) -> Array:
        return np.bincount(counts.reviewer, column, size).astype(np.float64)

    def share(chosen: Array) -> Array:
        rate: Array = count(chosen * counts.n_generated) / np.maximum(count(chosen * counts.n), 1.0)
        return rate

    n, rates = count(counts.n), share(np.ones(len(counts.n)))
    of_real, of_made = share(1 - counts.made), share(counts.made)
    certain = np.clip(rates, _MIN_CHANCE, 1 - _MIN_CHANCE)
    one_chance = n * (rates * np.log(certain) + (1 - rates) * np.log1p(-certain))
    gain = count(likelihoods) - one_chance
    rarer = np.minimum(of_real + of_made, 2 - of_real - of_made) / 2
    blind: BoolArray = gain <= np.where(rarer <= _NEARLY_CONSTANT, _CLEAR_GAIN, _CLEAR_LOSS)
    return blind


def _build_centring_matrix(layout: SkillTermLayout, anchors: BoolArray) -> Array:
    """Build the matrix that subtracts the anchors' mean realism; probabilities do not change."""
    centre = np.eye(layout.n_terms)
    if anchors.any():
        mean = np.zeros(layout.n_terms)
        mean[layout.parts["realism"]] = anchors / anchors.sum()
        centre[layout.parts["realism"]] -= mean
        centre[layout.parts["ability"]] -= mean
    return centre


def _estimate_term_variance(
    answers: SkillAnswerColumns,
    rows: EqualProbabilityCounts,
    terms: Array,
    centre: Array,
    *,
    guess: float,
    model: SkillModelPrior,
) -> Array:
    """Return the larger of sandwich and curvature variance per term, with a fitted guess rate."""
    _, curvature = rows.weigh(terms, guess)
    single = EqualProbabilityCounts.one_by_one(answers, rows.shape)
    score, _ = single.weigh(terms, guess)
    pull = np.full(len(terms), model.spread**-2)
    if model.guess is None and guess > 0:
        rows, single = (counts.with_floor(terms, guess) for counts in (rows, single))
        pull = np.append(pull, FEW_SLIPS**-2)
        centre = np.pad(centre, ((0, 0), (0, 1)))
    inverse = np.linalg.inv(rows.curve(curvature) + np.diag(pull))
    occurs = np.bincount(answers.scene) > 0
    n_scenes = int(occurs.sum())
    by_scene = single.slopes(score, (np.cumsum(occurs) - 1)[answers.scene], n_scenes)
    by_scene = by_scene - by_scene.mean(axis=0)
    arm = centre @ inverse
    sandwich = np.einsum("ij,jk,ik->i", arm, by_scene.T @ by_scene, arm)
    curvature = np.einsum("ij,ij->i", arm, centre)
    larger: Array = np.maximum(sandwich * n_scenes / (n_scenes - 1), curvature)
    return larger


@dataclass(frozen=True, slots=True, eq=False)
class _ConnectedEntrants:
    """Connected components of reviewers and creators by answers; only the largest is comparable."""

    reviewers: BoolArray
    creators: BoolArray
    n_real: IntArray
    """Number of answers of each reviewer about real clips."""
    n_made: IntArray
    n_about: IntArray
    """Number of answers about each creator."""

    @classmethod
    def of(cls, answers: SkillAnswerColumns, layout: SkillTermLayout) -> "_ConnectedEntrants":
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        generated = answers.creator != REAL
        size = layout.n_reviewers + layout.n_creators
        edges = (answers.reviewer[generated], answers.creator[generated] + layout.n_reviewers)
        graph = csr_array((np.ones(int(generated.sum())), edges), shape=(size, size))
        _, group = connected_components(graph, directed=False)
        largest = int(np.argmax(np.bincount(group[layout.n_reviewers :], minlength=1)))
        tied = group == largest
        counts = (
            np.bincount(answers.reviewer[~generated], minlength=layout.n_reviewers),
            np.bincount(answers.reviewer[generated], minlength=layout.n_reviewers),
            np.bincount(answers.creator[generated], minlength=layout.n_creators),
        )
        return cls(tied[: layout.n_reviewers], tied[layout.n_reviewers :], *counts)

    def why_bias(self) -> list[str]:
        """Return the reasons why reviewers' biases are unknown, or ""."""
        return ["" if n else "no readable answer about real clips" for n in self.n_real]

    def why_ability(self, blind: BoolArray) -> list[str]:
        """Return the reasons why reviewers' abilities are unknown, or ""; `blind`: see `SkillModelFit`."""
        columns = (self.n_made, self.reviewers, self.why_bias(), blind)
        return [
            "no readable answer about generated clips"
            if not n_generated
            else "the reviewer shares no creator with the others"
            if not tied
            else real or ("the answers hardly depend on the clip" if constant else "")
            for n_generated, tied, real, constant in zip(*columns, strict=True)
        ]

    def why_realism(self) -> list[str]:
        """Return the reasons why creators' realism is unknown, or ""."""
        alone = int((self.creators & (self.n_about > 0)).sum()) == 1
        return [
            "no readable answer about its clips"
            if not n
            else "no reviewer judged it together with the others"
            if not tied
            else "one creator alone has nothing to be compared with"
            if alone
            else ""
            for n, tied in zip(self.n_about, self.creators, strict=True)
        ]


def standardise_columns(columns: Array, chosen: Sequence[int] | IntArray) -> Array:
    """Return columns in deviations from the mean of `chosen` rows; unknown or constant: 0."""
    known = columns[chosen]
    is_known = np.isfinite(known)
    n = np.maximum(is_known.sum(axis=0), 1)
    mean = np.where(is_known, known, 0.0).sum(axis=0) / n
    spread = np.sqrt(np.where(is_known, (known - mean) ** 2, 0.0).sum(axis=0) / n)
    flat = spread <= 1e-12 * np.maximum(np.abs(mean), 1.0)
    scaled = (columns - mean) / np.where(flat, 1.0, spread)
    return np.where(np.isfinite(scaled) & ~flat, scaled, 0.0)
