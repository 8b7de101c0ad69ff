"""Truths and copied answers of small campaigns: simulated people whose accuracy is known."""

import numpy as np
import numpy.typing as npt
import pytest

from unreel.stats.copied_answers import FEWEST_SHARED, find_copying_annotators
from unreel.stats.dawid_skene import FEWEST_TASKS, MANY_TASKS, cross_fit_dawid_skene

Labels = npt.NDArray[np.int64]


def simulate(accuracies: list[float], n_tasks: int, *, seed: int) -> tuple[Labels, Labels]:
    """True labels, and the answers `[person, task]` of people who err independently."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n_tasks)
    right = rng.random((len(accuracies), n_tasks)) < np.array(accuracies)[:, None]
    return truth, np.where(right, truth, 1 - truth)


def as_columns(answers: Labels) -> tuple[Labels, Labels, Labels]:
    who, what = np.indices(answers.shape)
    return who.ravel(), what.ravel(), answers.ravel()


def test_equal_people_in_a_small_campaign_are_not_weighed() -> None:
    weighed = 0
    for seed in range(10):
        _, answers = simulate([0.8] * 3, 40, seed=seed)
        weighed += cross_fit_dawid_skene(*as_columns(answers)).weighs
    assert weighed <= 1


@pytest.mark.slow
def test_the_stated_certainty_of_a_small_campaign_is_near_the_truth() -> None:
    stated, right = [], []
    for seed in range(30):
        truth, answers = simulate([0.8] * 3, 40, seed=seed)
        posterior = cross_fit_dawid_skene(*as_columns(answers)).posterior
        stated.append(posterior.max(axis=1).mean())
        right.append((posterior.argmax(axis=1) == truth).mean())
    assert np.mean(stated) == pytest.approx(np.mean(right), abs=0.04)


def test_people_who_clearly_differ_are_weighed() -> None:
    truth, answers = simulate([0.9, 0.9, 0.6, 0.6, 0.6], 300, seed=1)
    skills = cross_fit_dawid_skene(*as_columns(answers))
    assert skills.weighs
    assert min(skills.accuracy[:2]) > max(skills.accuracy[2:])
    majority = (answers.mean(axis=0) > 0.5).astype(int)
    assert (skills.posterior.argmax(axis=1) == truth).mean() > (majority == truth).mean()


def test_a_few_tasks_are_counted_as_votes() -> None:
    answers = np.array([[1, 0, 1], [1, 0, 0], [1, 1, 0]])
    skills = cross_fit_dawid_skene(*as_columns(answers))
    assert not skills.weighs
    assert skills.posterior[:, 1] == pytest.approx([1, 1 / 3, 1 / 3], abs=0.01)
    assert len(answers[0]) < FEWEST_TASKS


def test_a_large_campaign_is_weighed_as_published() -> None:
    _, answers = simulate([0.9, 0.8, 0.6], MANY_TASKS, seed=2)
    skills = cross_fit_dawid_skene(*as_columns(answers))
    assert (skills.weighs, skills.converged) == (True, True)
    assert skills.accuracy == pytest.approx([0.9, 0.8, 0.6], abs=0.06)


def test_a_pair_that_copies_is_found() -> None:
    _, answers = simulate([0.6, 0.8, 0.8, 0.8], 60, seed=3)
    copied = np.vstack([answers, answers[0]])
    (pair,) = find_copying_annotators(*as_columns(copied)) or ()
    assert (pair.first, pair.second, pair.n_shared, pair.n_same) == (0, 4, 60, 60)
    assert pair.n_expected < 45


def test_independent_people_are_seldom_accused() -> None:
    accused = 0
    for seed in range(10):
        _, answers = simulate([0.8] * 4, 60, seed=seed)
        accused += bool(find_copying_annotators(*as_columns(answers), seed=seed))
    assert accused <= 1


@pytest.mark.parametrize(("n_people", "n_tasks"), [(3, 60), (13, 60), (4, FEWEST_SHARED - 1)])
def test_pairs_that_cannot_be_tested_are_not_called_innocent(n_people: int, n_tasks: int) -> None:
    _, answers = simulate([0.8] * n_people, n_tasks, seed=4)
    assert find_copying_annotators(*as_columns(answers)) is None
