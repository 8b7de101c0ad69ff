"""Detection of annotators whose answers agree more often than their accuracy explains.

If annotators err independently, the agreement of a pair beyond chance (Cohen's kappa) is the
product of two factors, one per annotator. With four or more annotators, all other pairs predict the
product of a pair, so a pair with copied answers is an outlier.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from unreel.stats.row_sample import Array, IntArray

FEWEST_PEOPLE = 4
"""Minimum number of annotators: with three, accuracies can explain any agreement of a pair."""
FEWEST_SHARED = 20
"""Minimum number of tasks that both annotators of a tested pair judged."""
_ALARM_RATE = 0.01
"""False-alarm rate over all pairs together, by Bonferroni's correction."""
MAX_PEOPLE = 12
"""Maximum number of annotators, because the test compares each pair with all others."""
_N_DRAWS = 100
"""Number of bootstrap resamples of tasks, for the standard error."""
_N_ROUNDS = 30
_FIRST_FACTOR = 0.7
_MIN_SPREAD = 0.05


@dataclass(frozen=True, slots=True)
class CopyingAnnotatorPair:
    """Two annotators who seem to copy answers, with their shared tasks, equal and expected answers."""

    first: int
    second: int
    n_shared: int
    n_same: int
    n_expected: float
    """Number of equal answers that the annotators' accuracies explain."""


def find_copying_annotators(
    annotator: npt.ArrayLike, task: npt.ArrayLike, label: npt.ArrayLike, *, seed: int = 0
) -> tuple[CopyingAnnotatorPair, ...] | None:
    """Find pairs that seem to copy, from integer columns by answer; `None` if none is testable."""
    annotators, tasks, labels = (np.asarray(column) for column in (annotator, task, label))
    n_people, n_tasks = int(annotators.max()) + 1, int(tasks.max()) + 1
    if not FEWEST_PEOPLE <= n_people <= MAX_PEOPLE:
        return None
    answers = np.zeros((n_people, n_tasks, int(labels.max()) + 1))
    answers[annotators, tasks, labels] = 1
    agreement = _compute_agreement(answers)
    tested = np.argwhere(np.triu(agreement.n_shared, 1) >= FEWEST_SHARED)
    if not len(tested):
        return None
    rng = np.random.default_rng(seed)
    draws = [
        _compute_agreement(answers[:, rng.integers(n_tasks, size=n_tasks)]) for _ in range(_N_DRAWS)
    ]
    kappas = np.stack([agreement.kappa, *(draw.kappa for draw in draws)])
    return tuple(_iter_copying_annotators(agreement, kappas, tested))


@dataclass(frozen=True, slots=True, eq=False)
class _AgreementMatrices:
    """Agreement of each pair of annotators, as square matrices."""

    n_shared: Array
    n_same: Array
    by_chance: Array
    """Expected fraction of equal answers if both annotators answered independently of the task."""
    kappa: Array


def _compute_agreement(answers: Array) -> _AgreementMatrices:
    """Compute the agreement of all pairs from `answers[annotator, task, label]`, 1 for the given label."""
    is_answered = answers.sum(axis=2)
    n_shared = is_answered @ is_answered.T
    n_same = np.einsum("atl,btl->ab", answers, answers)
    frequencies = np.einsum("atl,bt->abl", answers, is_answered)
    divisor = np.maximum(n_shared, 1)
    by_chance = np.einsum("abl,bal->ab", frequencies, frequencies) / divisor**2
    kappa = (n_same / divisor - by_chance) / np.where(by_chance < 1, 1 - by_chance, 1)
    return _AgreementMatrices(n_shared, n_same, by_chance, kappa)


def _iter_copying_annotators(
    agreement: _AgreementMatrices, kappas: Array, tested: IntArray
) -> Iterator[CopyingAnnotatorPair]:
    """Yield the pairs of annotators who seem to copy, the most certain first.

    A found pair is excluded from the fit of the others. `kappas[draw, i, j]` begins with the original
    tasks, followed by their resamples.
    """
    limit = -NormalDist().inv_cdf(_ALARM_RATE / len(tested))
    weights = agreement.n_shared * (1 - np.eye(len(agreement.kappa)))
    left = [(i, j) for i, j in tested.tolist()]
    while left:
        surprise, products = {}, {}
        for i, j in left:
            other_weights = weights.copy()
            other_weights[i, j] = other_weights[j, i] = 0
            factors = np.full(kappas.shape[:2], _FIRST_FACTOR)
            weighed = other_weights * kappas
            for _ in range(_N_ROUNDS):
                total = factors**2 @ other_weights
                fitted = np.einsum("dab,db->da", weighed, factors) / np.where(total > 0, total, 1)
                factors = (factors + np.clip(np.where(total > 0, fitted, factors), 0, 1)) / 2
            product: Array = factors[:, i] * factors[:, j]
            explained = product
            excess = kappas[:, i, j] - explained
            products[i, j] = float(explained[0])
            surprise[i, j] = excess[0] / max(excess[1:].std(), _MIN_SPREAD)
        i, j = max(surprise, key=lambda pair: surprise[pair])
        if surprise[i, j] < limit:
            return
        weights[i, j] = weights[j, i] = 0
        n, chance = int(agreement.n_shared[i, j]), float(agreement.by_chance[i, j])
        yield CopyingAnnotatorPair(
            first=i,
            second=j,
            n_shared=n,
            n_same=int(agreement.n_same[i, j]),
            n_expected=n * (chance + (1 - chance) * products[i, j]),
        )
        left = [pair for pair in left if not {i, j} & set(pair)]
