"""Clips of one scene are no independent clips: their answers stand or fall together."""

from collections.abc import Iterator

import numpy as np
import pytest

from unreel.core.clip import ClipId, Generated, Real
from unreel.core.content_ids import digest
from unreel.core.estimate import Estimate
from unreel.core.judgement import Label
from unreel.core.verdict import RealityVerdict
from unreel.protocols.metric_estimates import measure_mean_percent
from unreel.protocols.protocol import ScoredQuestion, get_protocol

CREATORS = ("a", "b", "c", "d", "e", "f", "g")


def caught(rng: np.random.Generator, n_scenes: int) -> np.ndarray:
    """Whether each creator's clip of each scene is caught: hard scenes are hard for all creators."""
    easy = rng.beta(2, 1, n_scenes)
    return rng.random((n_scenes, len(CREATORS))) < easy[:, np.newaxis]


def rows_of(told: np.ndarray, *, sources: bool) -> Iterator[ScoredQuestion]:
    for scene, line in enumerate(told):
        source = f"scene {scene}" if sources else ""
        real = RealityVerdict(label=Label.REAL)
        yield ScoredQuestion(
            subject=_clip(scene, "real"), truth=Real(), outcome=real, source=source
        )
        for creator, is_caught in zip(CREATORS, line, strict=True):
            said = RealityVerdict(label=Label.GENERATED if is_caught else Label.REAL)
            truth = Generated(creator)
            yield ScoredQuestion(
                subject=_clip(scene, creator), truth=truth, outcome=said, source=source
            )


def _clip(scene: int, creator: str) -> ClipId:
    return ClipId(digest("clip", str(scene), creator))


@pytest.mark.parametrize("n_scenes", [20, 100])
def test_an_interval_by_scene_holds_the_truth_and_one_by_clip_does_not(n_scenes: int) -> None:
    rng = np.random.default_rng(5)
    held = {"scene": 0, "clip": 0}
    for seed in range(200):
        values = caught(rng, n_scenes).astype(float).ravel().tolist()
        scenes = [str(number // len(CREATORS)) for number in range(len(values))]
        clips = [str(number) for number in range(len(values))]
        for name, clusters in (("scene", scenes), ("clip", clips)):
            measured = measure_mean_percent(values, clips=clusters, seed=seed)
            assert isinstance(measured, Estimate)
            held[name] += measured.low <= 100 * 2 / 3 <= measured.high
    assert held["scene"] >= 0.91 * 200
    assert held["clip"] < 0.85 * 200


@pytest.mark.parametrize("figure", ["fake-accuracy", "pooled", "balanced", "pooled-all-clips"])
def test_reality_draws_creators_too_where_they_are_enough_to_speak_for_others(figure: str) -> None:
    """Two creators are always caught, the others every second time."""
    told = np.random.default_rng(1).random((30, len(CREATORS))) < 0.5
    told[:, :2] = True
    rows = list(rows_of(told, sources=True))
    few = [row for row in rows if getattr(row.truth, "creator", "a") <= "e"]
    by_both, by_scene = (
        get_protocol("reality").score(part, seed=0)[figure] for part in (rows, few)
    )
    assert isinstance(by_both, Estimate)
    assert isinstance(by_scene, Estimate)
    assert by_both.high - by_both.low > 1.3 * (by_scene.high - by_scene.low)
    assert by_both.n_clusters is not None
    assert by_both.n_clusters < 20
    assert by_scene.n_clusters == 30


def test_a_figure_of_one_creator_is_about_that_creator() -> None:
    told = caught(np.random.default_rng(1), 30)
    card = get_protocol("reality").score(list(rows_of(told, sources=True)), seed=0)
    for figure in ("caught: a", "pooled: a", "balanced: a", "real-accuracy"):
        estimate = card[figure]
        assert isinstance(estimate, Estimate)
        assert estimate.n_clusters == 30
