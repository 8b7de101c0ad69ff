"""The list of examples follows from keys, weights and the seed alone."""

from types import SimpleNamespace

import pytest

from unreel.training.examples.example import (
    ExampleOrder,
    compute_epoch_length,
    count_training_steps,
)
from unreel.training.recipe import OptimiserSection


def _examples(n: int, data: int = 0) -> list[SimpleNamespace]:
    return [SimpleNamespace(key=f"{data}-{i}", data=data) for i in range(n)]


def _keys(order: ExampleOrder, start: int, n: int) -> list[str]:
    return [order[start + i].key for i in range(n)]


def test_a_pass_holds_each_example_once_and_the_next_follows_it() -> None:
    examples = _examples(31)
    order = ExampleOrder(examples, weights=[1.0], seed=3)
    for epoch in range(3):
        assert sorted(_keys(order, 31 * epoch, 31)) == sorted(each.key for each in examples)
    assert _keys(order, 0, 31) != _keys(order, 31, 31)


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
    in_a_pass = compute_epoch_length(_examples(100), [1.0])
    assert (
        count_training_steps(OptimiserSection(**given), in_a_pass=in_a_pass, n_devices=devices)
        == steps
    )
