"""The list of examples follows from seed and weights alone."""

from collections import Counter

import pytest

from unreel.train.order import Order, count_steps
from unreel.train.recipe import OptimiseSection


def _epoch(order: Order, epoch: int) -> list[int]:
    return [order[epoch * len(order) + i] for i in range(len(order))]


def test_an_epoch_of_equal_weights_holds_each_example_once() -> None:
    order = Order([1.0] * 101, seed=3)
    for epoch in range(5):
        assert sorted(_epoch(order, epoch)) == list(range(101))


def test_epochs_differ_and_come_out_the_same_again() -> None:
    first, second = Order([1.0] * 50, seed=3), Order([1.0] * 50, seed=3)
    assert _epoch(first, 0) != _epoch(first, 1)
    assert _epoch(second, 1) == _epoch(first, 1)
    assert _epoch(Order([1.0] * 50, seed=4), 0) != _epoch(first, 0)


def test_a_weight_says_how_often_an_example_is_drawn_against_the_others() -> None:
    order = Order([3.0] * 10 + [1.0] * 30, seed=0)
    drawn = Counter(each for epoch in range(8) for each in _epoch(order, epoch))
    assert sum(drawn[i] for i in range(10)) == 160
    assert all(8 <= drawn[i] <= 16 for i in range(10))
    assert all(0 < drawn[i] <= 8 for i in range(10, 40))


@pytest.mark.parametrize(
    ("given", "devices", "steps"),
    [
        ({"epochs": 2, "batch_size": 4}, 1, 50),
        ({"epochs": 2, "batch_size": 4, "accumulate": 2}, 1, 25),
        ({"epochs": 2, "batch_size": 4}, 8, 7),
        ({"epochs": 0.001, "batch_size": 4}, 1, 1),
        ({"epochs": 2, "max_steps": 3}, 1, 3),
    ],
)
def test_steps_fill_the_epochs_or_are_what_the_recipe_says(given, devices, steps) -> None:
    assert count_steps(OptimiseSection(**given), n_examples=100, n_devices=devices) == steps
