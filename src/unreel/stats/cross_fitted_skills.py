"""Cross-fitted Dawid-Skene: people get separate tables only as far as that predicts held-out answers.

Tables that are fitted to the answers they weight are overconfident in small campaigns. Here tasks
are assigned to folds, the truth of a task comes from tables of the other folds, and the strength of
the prior maximises the likelihood of the answers of held-out tasks. The strongest prior gives all
people the same table: then they have equal weight.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from unreel.stats.dawid_skene import AnnotatorSkills, dawid_skene
from unreel.stats.sample import Array, IntArray

MANY_TASKS: Final = 1_000
"""Number of tasks from which people are weighted without cross-fitting, as published."""
FEWEST_TASKS: Final = 10
"""With fewer tasks the chance of an answer is its share of the votes."""
EQUAL_PULL: Final = 1e6
"""Made-up tasks behind the prior that leave no difference between people."""
PULLS: Final = (2.0, 10.0)
"""Priors under which people differ, the weakest first."""
_N_FOLDS: Final = 5
_MOST_ROUNDS: Final = 2_000
"""Three people who differ need about 1,000 rounds to converge."""
_RARELY: Final = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class CrossFittedSkills:
    """Likely truths of all tasks and the accuracy of all annotators."""

    posterior: Array
    """`[task, label]`: each line sums to 1."""
    accuracy: Array
    """`[annotator]`: the same for all where people are not weighed."""
    weighs: bool
    """Whether telling people apart predicts held-out answers better than one table for all."""
    converged: bool
    """Whether Dawid-Skene converged; if not, people are not weighed."""


def cross_fit_skills(
    annotator: npt.ArrayLike,
    task: npt.ArrayLike,
    label: npt.ArrayLike,
    *,
    shape: tuple[int, int] = (0, 0),
) -> CrossFittedSkills:
    """Fit skills and truths to labels `[i]`, with arguments as `dawid_skene` takes them."""
    who, what, said = (np.asarray(column) for column in (annotator, task, label))
    shape = max(int(who.max()) + 1, shape[0]), max(int(said.max()) + 1, shape[1])
    answers = _FoldAnswers(who, what, said, shape)
    n_tasks = len(np.unique(what))
    if n_tasks >= MANY_TASKS:
        skills = answers.fit(PULLS[0])
        if skills.settled:
            return CrossFittedSkills(skills.posterior, skills.accuracy, weighs=True, converged=True)
    equal = answers.fit(EQUAL_PULL, most_rounds=0 if n_tasks < FEWEST_TASKS else _MOST_ROUNDS)
    if not FEWEST_TASKS <= n_tasks < MANY_TASKS:
        return CrossFittedSkills(
            equal.posterior, equal.accuracy, weighs=False, converged=n_tasks < FEWEST_TASKS
        )
    alike = _HeldOut.of(answers, EQUAL_PULL)
    best = max((_HeldOut.of(answers, pull) for pull in PULLS), key=lambda fit: fit.total)
    gain = best.log_likelihood - alike.log_likelihood
    weighs = best.converged and float(gain.sum()) > float(gain.std()) * len(gain) ** 0.5
    return CrossFittedSkills(
        posterior=(best if weighs else alike).posterior,
        accuracy=(answers.fit(best.pull) if weighs else equal).accuracy,
        weighs=weighs,
        converged=best.converged,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _FoldAnswers:
    who: IntArray
    task: IntArray
    said: IntArray
    shape: tuple[int, int]

    def only(self, chosen: npt.NDArray[np.bool_]) -> "_FoldAnswers":
        """Keep the chosen answers and number their tasks from 0."""
        _, task = np.unique(self.task[chosen], return_inverse=True)
        return _FoldAnswers(self.who[chosen], task, self.said[chosen], self.shape)

    def fit(self, pull: float, *, most_rounds: int = _MOST_ROUNDS) -> AnnotatorSkills:
        return dawid_skene(
            self.who, self.task, self.said, pull=pull, most_rounds=most_rounds, shape=self.shape
        )


@dataclass(frozen=True, slots=True, eq=False)
class _HeldOut:
    """Truths of held-out tasks under one prior."""

    pull: float
    posterior: Array
    log_likelihood: Array
    """`[task]`: of its answers."""
    converged: bool

    @property
    def total(self) -> float:
        return float(self.log_likelihood.sum())

    @classmethod
    def of(cls, answers: _FoldAnswers, pull: float) -> "_HeldOut":
        n_labels = answers.shape[1]
        logs = np.zeros((int(answers.task.max()) + 1, n_labels))
        converged = True
        folds = answers.task % min(_N_FOLDS, len(logs))
        for one in np.unique(folds):
            skills = answers.only(folds != one).fit(pull)
            judged = folds == one
            converged &= skills.settled
            tables = np.log(skills.confusion[answers.who[judged], :, answers.said[judged]])
            np.add.at(logs, answers.task[judged], tables)
            # Equal people count as in a majority, in which no label has a start.
            shares = skills.shares if pull < EQUAL_PULL else np.full(n_labels, 1 / n_labels)
            logs[np.unique(answers.task[judged])] += np.log(np.maximum(shares, _RARELY))
        top = logs.max(axis=1, keepdims=True)
        chances = np.exp(logs - top)
        total = chances.sum(axis=1, keepdims=True)
        return cls(pull, chances / total, (top + np.log(total))[:, 0], converged)
