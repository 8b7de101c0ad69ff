"""Differences that a benchmark is large enough to show."""

import importlib.util
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from unreel.core.errors import InvalidValueError
from unreel.stats.power import compute_detectable_accuracy_gap, compute_detectable_difference

COMMAND = Path(__file__).parents[2] / "benchmarks" / "power.py"


@pytest.fixture(scope="module")
def power() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("power", COMMAND)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["power"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["power"]


def test_a_true_difference_of_the_stated_size_is_found_in_8_of_10_comparisons(
    power: ModuleType,
) -> None:
    rows = power.measure(trials=60, seed=1, sizes=(60,))
    # 60 trials of 80 % give fewer than 65 % once in 300 times.
    assert all(row["power"] >= 0.65 for row in rows), rows
    assert sum(row["power"] for row in rows) / len(rows) < 0.97


def test_what_benchmarks_check_states_is_found_despite_the_correction(power: ModuleType) -> None:
    (row,) = power.find_corrected(trials=60, seed=1, sizes=(60,))
    assert 0.65 <= row["power"] < 0.97, row


def test_at_60_clips_10_points_are_too_few() -> None:
    assert compute_detectable_accuracy_gap(60) == pytest.approx(0.19, abs=0.01)
    assert compute_detectable_accuracy_gap(60) > 2 * compute_detectable_accuracy_gap(600)


def test_reviewers_that_seldom_differ_do_not_make_small_differences_visible() -> None:
    alike = compute_detectable_difference(0.0, free=59, n_clusters=60, reach=100)
    assert alike == pytest.approx(100 * compute_detectable_accuracy_gap(60, discordant=0.001))
    assert alike > 10
    assert compute_detectable_difference(50.0, free=59, n_clusters=60, reach=100) == 100
    assert compute_detectable_difference(1.0, free=59, n_clusters=60, reach=math.inf) < 3


def test_more_tests_need_larger_differences() -> None:
    one, many = (
        compute_detectable_difference(5.0, free=59, n_clusters=60, reach=100, alpha=alpha)
        for alpha in (0.05, 0.05 / 40)
    )
    assert one < many


@pytest.mark.parametrize(("n", "discordant"), [(1, 0.3), (60, 0.0), (60, 1.1)])
def test_plans_that_cannot_be_are_refused(n: int, discordant: float) -> None:
    with pytest.raises(InvalidValueError):
        compute_detectable_accuracy_gap(n, discordant=discordant)
