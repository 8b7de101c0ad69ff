"""Who is right and who answers well, from overlapping labels."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pace import slowness
from unreel.core.errors import InvalidValueError
from unreel.stats.dawid_skene import DawidSkeneFit, cross_fit_dawid_skene, dawid_skene
from unreel.stats.row_sample import Array, IntArray

Labels = tuple[IntArray, IntArray, IntArray]


def _draw(
    skill: Array, n_tasks: int, n_labels: int, overlap: int, seed: int = 1
) -> tuple[Labels, IntArray]:
    """Answers of people who know the truth with the chance `skill` and guess otherwise."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_labels, size=n_tasks)
    who = np.argsort(rng.random((n_tasks, len(skill))), axis=1)[:, :overlap].ravel()
    task = np.repeat(np.arange(n_tasks), overlap)
    guess = rng.integers(n_labels, size=len(task))
    label = np.where(rng.random(len(task)) < skill[who], truth[task], guess)
    return (who, task, label), truth


def test_it_finds_who_guesses_and_is_right_more_often_than_counting() -> None:
    skill = np.array([0.0, 0.0, 0.9, 0.8, 0.7, 0.9])
    labels, truth = _draw(skill, 2_000, 3, 3)
    found = dawid_skene(*labels)
    assert found.has_converged
    informedness = (np.einsum("akk->a", found.confusion) - 1) / (len(found.class_proportions) - 1)
    assert np.abs(informedness - skill).max() < 0.08
    counted = np.zeros((2_000, 3))
    np.add.at(counted, labels[1:], 1)
    right = (found.posterior.argmax(axis=1) == truth).mean()
    assert right > (counted.argmax(axis=1) == truth).mean() + 0.03


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=40
    ),
    pull=st.sampled_from([0.0, 0.5, 2.0]),
    data=st.data(),
)
def test_chances_sum_to_one_and_order_changes_nothing(
    rows: list[tuple[int, int, int]], pull: float, data: st.DataObject
) -> None:
    found = dawid_skene(*zip(*rows, strict=True), pull=pull, max_rounds=30)
    for chances in (found.posterior, found.confusion):
        assert np.isfinite(chances).all()
        assert chances.sum(axis=-1) == pytest.approx(1, abs=1e-6)
    shuffled = data.draw(st.permutations(rows))
    again = dawid_skene(*zip(*shuffled, strict=True), pull=pull, max_rounds=30)
    assert again.posterior == pytest.approx(found.posterior, abs=1e-6)


def test_the_prior_keeps_somebody_with_three_answers_from_being_infallible() -> None:
    labels, _ = _draw(np.full(5, 0.6), 200, 2, 3)
    rare = [np.append(column, more) for column, more in zip(labels, (5, 0, 0), strict=True)]
    without, with_pull = (dawid_skene(*rare, pull=pull) for pull in (0.0, 2.0))
    assert max(_sureness(without)) > 0.999
    assert max(_sureness(with_pull)) < 0.95


def _sureness(found: DawidSkeneFit) -> list[float]:
    sure: list[float] = found.confusion[5].max(axis=1).tolist()
    return sure


def test_one_label_and_one_annotator_are_taken_at_their_word() -> None:
    found = dawid_skene([0, 0], [0, 1], [0, 0])
    assert found.posterior.tolist() == [[1.0], [1.0]]
    assert found.accuracy.tolist() == [1.0]


def test_a_task_without_labels_is_as_likely_as_all_tasks_together() -> None:
    found = dawid_skene([0, 1, 0], [0, 0, 2], [1, 1, 0])
    assert found.posterior[1] == pytest.approx(found.class_proportions, abs=1e-3)


@pytest.mark.parametrize(
    "columns",
    [
        ([], [], []),
        ([0], [0, 1], [0, 1]),
        ([0], [0], [-1]),
        ([0.5], [0], [0]),
        ([[0]], [[0]], [[0]]),
    ],
)
def test_columns_that_are_no_labels_are_refused(columns: tuple[list[int], ...]) -> None:
    with pytest.raises(InvalidValueError):
        dawid_skene(*columns)


@pytest.mark.alone
def test_a_thousand_clips_take_well_under_a_second_and_a_million_labels_take_seconds() -> None:
    small, _ = _draw(np.linspace(0.3, 0.9, 20), 1_000, 2, 3)
    large, _ = _draw(np.linspace(0.3, 0.9, 40), 250_000, 5, 4)
    for labels, most_s in ((small, 0.5), (large, 30)):
        start_s = time.perf_counter()
        dawid_skene(*labels)
        assert time.perf_counter() - start_s < most_s * slowness()


@pytest.mark.parametrize("n_tasks", [10, 40])
def test_one_annotator_of_a_constant_label_never_changes_a_unanimous_rest(n_tasks: int) -> None:
    """Two annotators of 85 % and one who always says 1: stated certainty and accuracy agree."""
    stated, right = [], []
    for seed in range(20):
        draw = np.random.default_rng(seed)
        truth = draw.integers(0, 2, n_tasks)
        honest = [np.where(draw.random(n_tasks) < 0.85, truth, 1 - truth) for _ in range(2)]
        labels = np.stack([*honest, np.ones(n_tasks, int)], axis=1)
        fit = cross_fit_dawid_skene(
            np.tile(np.arange(3), n_tasks),
            np.repeat(np.arange(n_tasks), 3),
            labels.ravel(),
            shape=(3, 2),
        )
        chosen = fit.posterior.argmax(axis=1)
        agreed = labels[:, 0] == labels[:, 1]
        assert (chosen[agreed] == labels[agreed, 0]).all()
        stated.append(fit.posterior.max(axis=1).mean())
        right.append((chosen == truth).mean())
    assert np.mean(stated) < np.mean(right) + 0.05
