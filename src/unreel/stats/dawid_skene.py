"""Estimates of true labels and annotators' error rates from overlapping labels, plain and cross-fitted.

Dawid and Skene 1979 (doi:10.2307/2346806): every annotator has a table of how often they give
each label for each true label. The tables give the probabilities of the true labels, and these
probabilities give new tables, until nothing changes. A weak prior stabilises the table of an
annotator with few answers: without it, three answers that agree by chance would give the
annotator an error rate of 0.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from unreel.core.errors import InvalidValueError
from unreel.stats.row_sample import Array, IntArray

MAX_ROUNDS = 200
_STILL = 1e-6
"""Convergence threshold: maximum change of any probability in the last round."""
_ERRORS = 10
"""Ratio of the strengths of the priors for kinds of errors and for error rates."""
_RARELY = 1e-10
"""Minimum probability of a label: the logarithm of 0 would let one answer outweigh all others."""


@dataclass(frozen=True, slots=True, eq=False)
class DawidSkeneFit:
    """Fit of Dawid and Skene's model: label probabilities of each task, and annotators' error rates."""

    posterior: Array
    """Probability of each label of each task, `[task, label]`; each row sums to 1."""
    class_proportions: Array
    """Frequency of each true label, `[label]`."""
    confusion: Array
    """Probability of each given label, `[annotator, true label, given label]`; each row sums to 1."""
    n_rounds: int
    has_converged: bool
    """Whether the iteration converged."""

    @property
    def accuracy(self) -> Array:
        """Return `[annotator]`: the probability that the annotator gives the true label of a random task."""
        right: Array = np.einsum("k,akk->a", self.class_proportions, self.confusion)
        return right


def dawid_skene(
    annotator: npt.ArrayLike,
    task: npt.ArrayLike,
    label: npt.ArrayLike,
    *,
    pull: float = 2.0,
    max_rounds: int = MAX_ROUNDS,
    shape: tuple[int, int] = (0, 0),
) -> DawidSkeneFit:
    """Estimate annotator skills and true labels from the labels `[i]`.

    `annotator`, `task` and `label` contain integers from 0. The estimate starts at the label
    shares of each task, so the order of the labels has no effect. `pull` is the strength of the
    prior, as a number of artificial tasks per true label; 0 gives the published method. `shape` is
    the number of annotators and of labels, in case the last of them do not occur in the data.
    """
    people, tasks, labels = (_require_index_column(column) for column in (annotator, task, label))
    if not len(people) == len(tasks) == len(labels) > 0 or pull < 0:
        raise InvalidValueError(
            f"labels need an annotator, a task and a label each, got {len(people)}, {len(tasks)} and "
            f"{len(labels)}, with pull {pull}. Align them"
        )
    n_people, n_tasks, n_labels = (int(column.max()) + 1 for column in (people, tasks, labels))
    n_people, n_labels = max(n_people, shape[0]), max(n_labels, shape[1])
    ones = np.ones(len(people))
    cells = people * n_labels + labels
    answers = csr_array((ones, (cells, tasks)), shape=(n_people * n_labels, n_tasks))
    votes = csr_array((ones, (tasks, labels)), shape=(n_tasks, n_labels)).toarray()
    return _run_expectation_maximisation(
        answers, _normalise_rows(votes), pull=pull, max_rounds=max_rounds
    )


def _run_expectation_maximisation(
    answers: csr_array[np.float64, tuple[int, int]],
    posterior: Array,
    *,
    pull: float,
    max_rounds: int,
) -> DawidSkeneFit:
    """Alternate confusion tables and labels until stable, `max_rounds` at most, on the counts `answers`."""
    by_task = answers.T.tocsr()
    n_labels = posterior.shape[1]
    moved, n_rounds = np.inf, 0
    while True:
        proportions = _normalise_rows(posterior.sum(axis=0, keepdims=True))[0]
        counts = np.asarray(answers @ posterior).reshape(-1, n_labels, n_labels)
        confusion = _estimate_confusion_tables(counts.transpose(0, 2, 1), pull=pull)
        if moved <= _STILL or n_rounds >= max_rounds:
            return DawidSkeneFit(
                posterior, proportions, confusion, n_rounds, has_converged=bool(moved <= _STILL)
            )
        logs = np.log(confusion).transpose(0, 2, 1).reshape(-1, n_labels)
        updated = _compute_softmax(
            np.asarray(by_task @ logs) + np.log(np.maximum(proportions, _RARELY))
        )
        moved = float(np.abs(updated - posterior).max())
        posterior, n_rounds = updated, n_rounds + 1


def _estimate_confusion_tables(counts: Array, *, pull: float) -> Array:
    """Return rows of `counts[annotator, true, given]` as fractions, with the prior.

    An annotator's accuracy for a label is shrunk towards the annotator's overall accuracy, and the
    errors towards the errors of all. The first prior is weak, because annotators who prefer one label
    are right about that label only; the second is stronger, because errors are few and labels many.
    """
    if pull == 0 or counts.shape[-1] == 1:
        return np.maximum(_normalise_rows(counts), _RARELY)
    same = np.eye(counts.shape[-1])
    hits, totals = np.einsum("akk->ak", counts), counts.sum(axis=2)
    overall = hits.sum() / totals.sum()
    accuracy = (hits.sum(axis=1) + pull * overall) / (totals.sum(axis=1) + pull)
    right = (hits + pull * accuracy[:, np.newaxis]) / (totals + pull)
    common = _normalise_rows((counts.sum(axis=0) + _RARELY) * (1 - same))
    errors = _normalise_rows((counts + _ERRORS * pull * common) * (1 - same))
    tables: Array = right[:, :, np.newaxis] * same + (1 - right)[:, :, np.newaxis] * errors
    return np.maximum(tables, _RARELY)


def _normalise_rows(counts: Array) -> Array:
    """Return each line of `counts` divided by its sum; a line of zeros becomes uniform."""
    total = counts.sum(axis=-1, keepdims=True)
    even = 1 / counts.shape[-1]
    proportions: Array = np.divide(counts, total, out=np.full_like(counts, even), where=total > 0)
    return proportions


def _compute_softmax(logs: Array) -> Array:
    """Return probabilities from their logarithms, which may lack a constant per line."""
    chances = np.exp(logs - logs.max(axis=1, keepdims=True))
    proportions: Array = chances / chances.sum(axis=1, keepdims=True)
    return proportions


def _require_index_column(column: npt.ArrayLike) -> IntArray:
    numbers = np.asarray(column)
    if numbers.ndim != 1 or (
        len(numbers) and (numbers.dtype.kind not in "iu" or numbers.min() < 0)
    ):
        raise InvalidValueError(
            "annotators, tasks and labels are whole numbers from 0, in flat columns. Number them"
        )
    return numbers.astype(np.int64)


MANY_TASKS = 1_000
"""Number of tasks from which annotators are weighted without cross-fitting, as published."""
FEWEST_TASKS = 30
"""Minimum number of tasks to fit a model; with fewer, the probability of a label is its fraction of the votes."""
EQUAL_PULL = 1e6
"""Prior strength, in artificial tasks, that leaves no difference between annotators."""
PULLS = (2.0, 10.0)
"""Prior strengths under which annotators may differ, the weakest first."""
_N_FOLDS = 5
MAX_CROSS_FIT_ROUNDS = 2_000
"""Maximum number of rounds; three annotators who differ need about 1,000 rounds to converge."""
_MIN_PROPORTION = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class CrossFittedDawidSkene:
    """Label probabilities of each task, accuracy of each annotator, and whether weights are justified."""

    posterior: Array
    """Probability of each label of each task, `[task, label]`; each row sums to 1."""
    accuracy: Array
    """Accuracy of each annotator, `[annotator]`; equal for all if annotators are not weighted."""
    weighs: bool
    """Whether separate tables per annotator predict held-out answers better than one table for all."""
    converged: bool
    """Whether Dawid-Skene converged; if not, annotators are not weighted."""


def cross_fit_dawid_skene(
    annotator: npt.ArrayLike,
    task: npt.ArrayLike,
    label: npt.ArrayLike,
    *,
    shape: tuple[int, int] = (0, 0),
) -> CrossFittedDawidSkene:
    """Fit Dawid-Skene, and weight annotators only if that predicts held-out answers better.

    The strength of the prior is chosen by cross-validation, and each task's labels are then estimated
    with error rates fitted on other tasks. With many tasks Dawid-Skene is used without
    cross-validation; with few tasks, or if it does not converge, annotators have equal weight. An
    annotator who gave one label to all tasks has no weight in a weighted estimate, because a constant
    answer predicts itself and not the truth: two or more others who agree have the label of the task. The
    arguments are those of `dawid_skene`.
    """
    people, tasks, labels = (np.asarray(column) for column in (annotator, task, label))
    shape = max(int(people.max()) + 1, shape[0]), max(int(labels.max()) + 1, shape[1])
    answers = _AnswerIndexColumns(people, tasks, labels, shape)
    n_tasks = len(np.unique(tasks))
    if n_tasks >= MANY_TASKS:
        skills = answers.fit(PULLS[0])
        if skills.has_converged:
            equal = answers.fit(EQUAL_PULL)
            return CrossFittedDawidSkene(
                answers.keep_unanimous_rest(skills.posterior, equal.posterior),
                skills.accuracy,
                weighs=True,
                converged=True,
            )
    equal = answers.fit(
        EQUAL_PULL, max_rounds=0 if n_tasks < FEWEST_TASKS else MAX_CROSS_FIT_ROUNDS
    )
    if not FEWEST_TASKS <= n_tasks < MANY_TASKS:
        return CrossFittedDawidSkene(
            equal.posterior, equal.accuracy, weighs=False, converged=n_tasks < FEWEST_TASKS
        )
    equal_skills = _HeldOutFit.of(answers, EQUAL_PULL)
    best = max((_HeldOutFit.of(answers, pull) for pull in PULLS), key=lambda fit: fit.total)
    gain = best.log_likelihood - equal_skills.log_likelihood
    weighs = best.converged and float(gain.sum()) > float(gain.std()) * len(gain) ** 0.5
    return CrossFittedDawidSkene(
        posterior=answers.keep_unanimous_rest(best.posterior, equal_skills.posterior)
        if weighs
        else equal_skills.posterior,
        accuracy=(answers.fit(best.pull) if weighs else equal).accuracy,
        weighs=weighs,
        converged=best.converged,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _AnswerIndexColumns:
    who: IntArray
    task: IntArray
    answer: IntArray
    shape: tuple[int, int]

    def only(self, chosen: npt.NDArray[np.bool_]) -> "_AnswerIndexColumns":
        """Return the chosen answers, with their tasks numbered from 0."""
        _, task = np.unique(self.task[chosen], return_inverse=True)
        return _AnswerIndexColumns(self.who[chosen], task, self.answer[chosen], self.shape)

    @property
    def is_informative(self) -> npt.NDArray[np.bool_]:
        """Return, for each answer, whether its annotator gave more than one label."""
        given = np.zeros(self.shape, dtype=np.bool_)
        given[self.who, self.answer] = True
        informative: npt.NDArray[np.bool_] = given.sum(axis=1)[self.who] > 1
        return informative

    def keep_unanimous_rest(self, weighted: Array, equal: Array) -> Array:
        """Return `weighted`, with rows of `equal` where it contradicts all annotators of more than one label."""
        votes = np.zeros_like(weighted)
        known = self.is_informative
        np.add.at(votes, (self.task[known], self.answer[known]), 1)
        top = votes.argmax(axis=1)
        agreeing, total = votes.max(axis=1), votes.sum(axis=1)
        is_contradicted = weighted.argmax(axis=1) != top
        is_unanimous = (agreeing >= 2) & (total == agreeing)  # noqa: PLR2004  two who agree
        return np.where((is_contradicted & is_unanimous)[:, np.newaxis], equal, weighted)

    def fit(self, pull: float, *, max_rounds: int = MAX_CROSS_FIT_ROUNDS) -> DawidSkeneFit:
        return dawid_skene(
            self.who, self.task, self.answer, pull=pull, max_rounds=max_rounds, shape=self.shape
        )


@dataclass(frozen=True, slots=True, eq=False)
class _HeldOutFit:
    """True labels of held-out tasks, estimated under one strength of the prior."""

    pull: float
    posterior: Array
    log_likelihood: Array
    """Log-likelihood of the answers of each task, `[task]`."""
    converged: bool

    @property
    def total(self) -> float:
        return float(self.log_likelihood.sum())

    @classmethod
    def of(cls, answers: _AnswerIndexColumns, pull: float) -> "_HeldOutFit":
        n_labels = answers.shape[1]
        logs = np.zeros((int(answers.task.max()) + 1, n_labels))
        converged = True
        folds = answers.task % min(_N_FOLDS, len(logs))
        is_counted = (
            answers.is_informative if pull < EQUAL_PULL else np.full(len(folds), fill_value=True)
        )
        for fold in np.unique(folds):
            if not (is_counted & (folds != fold)).any():
                is_counted = np.full(len(folds), fill_value=True)
            skills = answers.only(is_counted & (folds != fold)).fit(pull)
            held_out = folds == fold
            converged &= skills.has_converged
            known = held_out & is_counted
            tables = np.log(skills.confusion[answers.who[known], :, answers.answer[known]])
            np.add.at(logs, answers.task[known], tables)
            # Equal annotators count as in a majority vote, in which all labels have the same prior.
            proportions = (
                skills.class_proportions if pull < EQUAL_PULL else np.full(n_labels, 1 / n_labels)
            )
            logs[np.unique(answers.task[held_out])] += np.log(
                np.maximum(proportions, _MIN_PROPORTION)
            )
        top = logs.max(axis=1, keepdims=True)
        chances = np.exp(logs - top)
        total = chances.sum(axis=1, keepdims=True)
        return cls(pull, chances / total, (top + np.log(total))[:, 0], converged)
