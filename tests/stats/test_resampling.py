"""Scenes and creators drawn together: the doubt of a figure that should hold for other scenes and creators."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from stats.pairs import mean_difference
from unreel.core.estimate import Estimate, Measured, RowCluster
from unreel.stats.bootstrap import bootstrap_mean
from unreel.stats.detection_metrics import auc, measure_probability_calibration

Estimated = Callable[[Measured], Estimate]
Array = npt.NDArray[np.float64]
TRIALS = 150


def crossed(n_scenes: int, n_creators: int) -> list[RowCluster]:
    return [RowCluster(str(s), f"c{c}") for s in range(n_scenes) for c in range(n_creators)]


def answers(
    rng: np.random.Generator, n_scenes: int, n_creators: int, *, scene: float, creator: float
) -> Array:
    """Right or wrong answers; scenes and creators are hard or easy by so many logits. Their mean is 1/2."""
    ease = scene * rng.normal(size=(n_scenes, 1)) + creator * rng.normal(size=(1, n_creators))
    right = rng.random((n_scenes, n_creators)) < 1 / (1 + np.exp(-ease))
    return right.ravel().astype(np.float64)


def width(estimate: Estimate) -> float:
    return estimate.high - estimate.low


@pytest.mark.parametrize(
    ("scene", "creator"),
    [
        pytest.param(1.2, 0.0, marks=pytest.mark.slow),
        (1.2, 0.7),
        pytest.param(0.0, 0.7, marks=pytest.mark.slow),
    ],
)
def test_a_share_over_scenes_and_creators(
    scene: float, creator: float, estimated: Estimated
) -> None:
    rng, held = np.random.default_rng(3), 0
    for seed in range(TRIALS):
        right = answers(rng, 100, 7, scene=scene, creator=creator)
        found = estimated(bootstrap_mean(right, seed=seed, clusters=crossed(100, 7), bounds=(0, 1)))
        held += found.low <= 0.5 <= found.high
    assert 0.9 <= held / TRIALS <= 0.99


def test_forgetting_the_creators_would_be_wrong(estimated: Estimated) -> None:
    rng, held = np.random.default_rng(3), 0
    scenes = [cluster.scene for cluster in crossed(100, 7)]
    for seed in range(TRIALS):
        right = answers(rng, 100, 7, scene=1.2, creator=0.7)
        found = estimated(bootstrap_mean(right, seed=seed, clusters=scenes, bounds=(0, 1)))
        held += found.low <= 0.5 <= found.high
    assert held / TRIALS < 0.8


def test_a_paired_difference_over_scenes_and_creators(estimated: Estimated) -> None:
    """One reviewer is better, by another margin for each creator."""
    rng, held = np.random.default_rng(4), 0
    for _ in range(TRIALS):
        margin = np.tile(0.2 + 0.15 * rng.normal(size=8), 40)
        theirs = rng.normal(size=320)
        ours = theirs + margin + 0.3 * rng.normal(size=320)
        found = estimated(mean_difference(ours, theirs, clusters=crossed(40, 8)))
        held += found.low <= 0.2 <= found.high
    assert 0.9 <= held / TRIALS <= 0.99


def test_creators_too_few_to_speak_for_others_are_not_drawn(
    rng: np.random.Generator, estimated: Estimated
) -> None:
    right = answers(rng, 40, 5, scene=1.0, creator=2.0)
    clusters = crossed(40, 5)
    both = estimated(bootstrap_mean(right, seed=1, clusters=clusters, bounds=(0, 1)))
    scenes = [cluster.scene for cluster in clusters]
    assert both == bootstrap_mean(right, seed=1, clusters=scenes, bounds=(0, 1))


@pytest.mark.parametrize(("scene", "creator"), [(0, 0), (2, 0), (0, 2), (2, 2)])
def test_two_ways_are_never_surer_than_one(
    scene: float, creator: float, rng: np.random.Generator, estimated: Estimated
) -> None:
    right = answers(rng, 30, 8, scene=scene, creator=creator)
    clusters = crossed(30, 8)
    both, by_scene, by_creator = (
        estimated(bootstrap_mean(right, seed=1, clusters=drawn, bounds=(0, 1)))
        for drawn in (
            clusters,
            [cluster.scene for cluster in clusters],
            [cluster.creator for cluster in clusters],
        )
    )
    # A draw of eight creators again and again is itself known to a few percent.
    assert width(both) >= 0.95 * max(width(by_scene), width(by_creator))


def test_scenes_of_one_creator_each_are_drawn_by_creator(
    rng: np.random.Generator, estimated: Estimated
) -> None:
    right = answers(rng, 20, 10, scene=0, creator=1.5)
    nested = [RowCluster(str(row), f"c{row % 10}") for row in range(200)]
    by_both = estimated(bootstrap_mean(right, seed=1, clusters=nested, bounds=(0, 1)))
    creators = [cluster.creator for cluster in nested]
    by_creator = estimated(bootstrap_mean(right, seed=1, clusters=creators, bounds=(0, 1)))
    assert width(by_both) == pytest.approx(width(by_creator), rel=0.1)
    assert by_both.n_clusters == pytest.approx(10, abs=1)


def test_many_creators_of_one_clip_each_change_nothing(
    rng: np.random.Generator, estimated: Estimated
) -> None:
    values = rng.random(400)
    alone = estimated(bootstrap_mean(values, seed=1, bounds=(0, 1)))
    made = [RowCluster(str(row), f"c{row}") for row in range(400)]
    each = estimated(bootstrap_mean(values, seed=1, clusters=made, bounds=(0, 1)))
    assert width(each) == pytest.approx(width(alone), rel=0.1)


def test_real_clips_vary_by_scene_alone(rng: np.random.Generator, estimated: Estimated) -> None:
    """Whoever made the generated clips, the doubt that real clips bring stays in."""
    generated, real = np.ones(280), rng.integers(0, 2, 40).astype(np.float64)
    clusters = [*crossed(40, 7), *(RowCluster(str(scene)) for scene in range(40))]
    values = np.concatenate([generated, real])
    scenes = [cluster.scene for cluster in clusters]
    both, by_scene = (
        estimated(bootstrap_mean(values, seed=1, clusters=drawn, bounds=(0, 1)))
        for drawn in (clusters, scenes)
    )
    assert width(by_scene) <= width(both) < 1.1 * width(by_scene)


def test_the_order_of_rows_changes_nothing(rng: np.random.Generator) -> None:
    right, clusters = answers(rng, 20, 8, scene=1, creator=1), crossed(20, 8)
    order = rng.permutation(len(right))
    shuffled = [clusters[place] for place in order]
    there = bootstrap_mean(right, seed=1, clusters=clusters, bounds=(0, 1))
    assert bootstrap_mean(right[order], seed=1, clusters=shuffled, bounds=(0, 1)) == there


def test_creators_that_all_scenes_agree_on_still_bring_doubt(estimated: Estimated) -> None:
    """No draw of scenes differs from another; the creators do."""
    right = np.tile([1.0, 1, 1, 1, 1, 1, 0, 0], 30)
    found = estimated(bootstrap_mean(right, seed=1, clusters=crossed(30, 8), bounds=(0, 1)))
    assert width(found) > 0.4
    assert found.n_clusters == 8


def test_an_auc_and_a_calibration_widen_with_their_creators(
    rng: np.random.Generator, estimated: Estimated
) -> None:
    told = np.concatenate(
        [(rng.normal(size=(60, 1)) + np.linspace(-1, 2, 8)).ravel(), rng.normal(size=60)]
    )
    truth = np.repeat([1, 0], [480, 60])
    clusters = [*crossed(60, 8), *(RowCluster(str(scene)) for scene in range(60))]
    scenes = [cluster.scene for cluster in clusters]
    told = 1 / (1 + np.exp(-told))
    for measure in (auc, lambda *data, **ties: measure_probability_calibration(*data, **ties).ece):
        both, by_scene = (
            estimated(measure(truth, told, seed=1, clusters=drawn)) for drawn in (clusters, scenes)
        )
        assert both.value == by_scene.value
        assert width(both) > 1.2 * width(by_scene)
