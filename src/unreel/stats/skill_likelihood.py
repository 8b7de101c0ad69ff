"""Counted answers of the skill model, with the log-likelihood, its gradient and its curvature."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from unreel.core.errors import InvalidValueError
from unreel.stats.row_sample import Array, BoolArray, IntArray

REAL = -1
"""Value of `creator` for a real clip."""
_MIN_DENOMINATOR = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SkillAnswerColumns:
    """Readable answers for the skill model, as columns: reviewer, creator, scene, answer, nuisances."""

    reviewer: IntArray
    creator: IntArray
    """Index of the creator; `REAL` for a real clip."""
    scene: IntArray
    generated: BoolArray
    """Whether the answer is "generated"."""
    nuisance: Array
    """Nuisance variables in standard deviations, `[answer, nuisance]`."""

    def __post_init__(self) -> None:
        columns = (self.creator, self.scene, self.generated, self.nuisance)
        if any(len(column) != len(self.reviewer) for column in columns):
            raise InvalidValueError("columns of answers must be equally long. Build them together")


@dataclass(frozen=True, slots=True)
class SkillTermLayout:
    """Numbers of terms by kind, and their positions in one vector."""

    n_reviewers: int
    n_creators: int
    n_nuisances: int = 0

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Return the numbers of bias, ability, realism and sway terms."""
        return self.n_reviewers, self.n_reviewers, self.n_creators, self.n_nuisances

    @property
    def n_terms(self) -> int:
        """Return the total number of terms."""
        return sum(self.sizes)

    @property
    def parts(self) -> Mapping[str, slice]:
        """Return the slice of each kind of term in the vector of all terms."""
        ends = np.cumsum((0, *self.sizes)).tolist()
        names = ("bias", "ability", "realism", "sway")
        return {name: slice(ends[i], ends[i + 1]) for i, name in enumerate(names)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EqualProbabilityCounts:
    """Counts of equally probable answers: reviewer by creator; single ones with nuisance variables."""

    shape: SkillTermLayout
    reviewer: IntArray
    creator: IntArray
    """Index of the creator; 0 if the clip is real, see `made`."""
    made: Array
    """1 if the clip is generated, otherwise 0."""
    nuisance: Array
    n: Array
    n_generated: Array
    """Number of the `n` answers that are "generated"."""

    @classmethod
    def of(cls, answers: SkillAnswerColumns, layout: SkillTermLayout) -> "EqualProbabilityCounts":
        """Count the answers of each reviewer and creator; with nuisances, build one group per answer."""
        if layout.n_nuisances:
            return cls.one_by_one(answers, layout)
        wide = layout.n_creators + 1
        cell = answers.reviewer.astype(np.int64) * wide + (answers.creator - REAL)
        n = np.bincount(cell, minlength=layout.n_reviewers * wide).astype(np.float64)
        n_generated = np.bincount(cell, weights=answers.generated, minlength=len(n))
        occurs = np.flatnonzero(n)
        reviewer, source = np.divmod(occurs, wide)
        return cls(
            shape=layout,
            reviewer=reviewer,
            creator=np.maximum(source + REAL, 0),
            made=(source + REAL != REAL).astype(np.float64),
            nuisance=np.zeros((len(occurs), 0)),
            n=n[occurs],
            n_generated=n_generated[occurs].astype(np.float64),
        )

    @classmethod
    def one_by_one(
        cls, answers: SkillAnswerColumns, layout: SkillTermLayout
    ) -> "EqualProbabilityCounts":
        """Build groups of one answer each."""
        return cls(
            shape=layout,
            reviewer=answers.reviewer.astype(np.int64),
            creator=np.maximum(answers.creator, 0).astype(np.int64),
            made=(answers.creator != REAL).astype(np.float64),
            nuisance=answers.nuisance,
            n=np.ones(len(answers.reviewer)),
            n_generated=answers.generated.astype(np.float64),
        )

    def odds(self, terms: Array) -> Array:
        """Return the log-odds of each row, before the guess rate."""
        bias, ability, realism, sway = (terms[part] for part in self.shape.parts.values())
        log_odds: Array = bias[self.reviewer]
        if self.shape.n_creators:
            log_odds = log_odds + self.made * (ability[self.reviewer] - realism[self.creator])
        if self.shape.n_nuisances:
            log_odds = log_odds + np.einsum("ik,k->i", self.nuisance, sway)
        return log_odds

    def likelihoods(self, terms: Array, guess: float) -> Array:
        """Return the log-likelihood of each row."""
        log_odds = self.odds(terms)
        if guess == 0:
            certain: Array = self.n_generated * log_odds - self.n * np.logaddexp(0.0, log_odds)
            return certain
        chance = guess + (1 - 2 * guess) * _compute_logistic(log_odds)
        missed = self.n - self.n_generated
        slipping: Array = self.n_generated * np.log(chance) + missed * np.log1p(-chance)
        return slipping

    def likelihood(self, terms: Array, guess: float) -> float:
        """Return the log-likelihood of all rows together."""
        return float(self.likelihoods(terms, guess).sum())

    def weigh(self, terms: Array, guess: float) -> tuple[Array, Array]:
        """Compute slope and expected curvature of the log-likelihood of each row in the log-odds."""
        bare = _compute_logistic(self.odds(terms))
        if guess == 0:
            return self.n_generated - self.n * bare, self.n * bare * (1 - bare)
        chance = guess + (1 - 2 * guess) * bare
        steep = (1 - 2 * guess) * bare * (1 - bare)
        spread = chance * (1 - chance)
        score = (self.n_generated - self.n * chance) * steep / spread
        return score, self.n * steep**2 / spread

    def with_floor(self, terms: Array, guess: float) -> "EqualProbabilityCounts":
        """Return the rows with the guess rate as one more nuisance variable, by the effect on the log-odds."""
        bare = _compute_logistic(self.odds(terms))
        moved = (1 - 2 * bare) / np.maximum((1 - 2 * guess) * bare * (1 - bare), _MIN_DENOMINATOR)
        return replace(
            self,
            shape=replace(self.shape, n_nuisances=self.shape.n_nuisances + 1),
            nuisance=np.column_stack([self.nuisance, moved]),
        )

    def slope(self, score: Array) -> Array:
        """Compute the slope of the log-likelihood in every term."""
        shape, generated = self.shape, self.made * score
        return np.concatenate(
            [
                np.bincount(self.reviewer, score, shape.n_reviewers),
                np.bincount(self.reviewer, generated, shape.n_reviewers),
                -np.bincount(self.creator, generated, shape.n_creators)[: shape.n_creators],
                np.einsum("ik,i->k", self.nuisance, score),
            ]
        )

    def slopes(self, score: Array, scene: IntArray, n_scenes: int) -> Array:
        """Compute the slope of the log-likelihood in every term by scene, one scene per line."""
        shape, generated = self.shape, self.made * score

        def by(column: IntArray, weights: Array, size: int) -> Array:
            flat = np.bincount(scene * max(size, 1) + column, weights, n_scenes * max(size, 1))
            return flat.astype(np.float64).reshape(n_scenes, -1)[:, :size]

        return np.concatenate(
            [
                by(self.reviewer, score, shape.n_reviewers),
                by(self.reviewer, generated, shape.n_reviewers),
                -by(self.creator, generated, shape.n_creators),
                *(
                    np.bincount(scene, column * score, n_scenes)[:, np.newaxis]
                    for column in self.nuisance.T
                ),
            ],
            axis=1,
        )

    def curve(self, weight: Array) -> Array:
        """Compute the negated curvature of the log-likelihood for every two terms."""
        shape = self.shape
        bias, ability, realism, sway = shape.parts.values()
        curve = np.zeros((shape.n_terms, shape.n_terms))
        generated = self.made * weight
        per_reviewer, per_made = (
            np.bincount(self.reviewer, column, shape.n_reviewers) for column in (weight, generated)
        )
        wide = max(shape.n_creators, 1)
        between = np.bincount(
            self.reviewer * wide + self.creator, generated, shape.n_reviewers * wide
        ).reshape(shape.n_reviewers, wide)[:, : shape.n_creators]
        curve[bias, bias] = np.diag(per_reviewer)
        curve[bias, ability] = curve[ability, bias] = curve[ability, ability] = np.diag(per_made)
        for part in (bias, ability):
            curve[part, realism], curve[realism, part] = -between, -between.T
        curve[realism, realism] = np.diag(between.sum(axis=0))
        for i, column in enumerate(self.nuisance.T):
            across = self.slope(weight * column)
            curve[sway.start + i] = across
            curve[:, sway.start + i] = across
        return curve


def _compute_logistic(log_odds: Array) -> Array:
    logistic: Array = 1 / (1 + np.exp(-np.clip(log_odds, -700, 700)))
    return logistic
