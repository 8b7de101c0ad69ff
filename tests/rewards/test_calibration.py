"""Calibration of the probability of real, cross-fitted by scene."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss

from scripted import ScriptedReviewer
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.question import Condition
from unreel.protocols.protocol import get_protocol
from unreel.rewards.calibration import RewardCalibration, cross_fit_calibration, read_calibration
from unreel.rewards.model import RewardModel


def drawn(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Probabilities that are too sure: the truth follows their square."""
    draw = np.random.default_rng(seed)
    stated = draw.uniform(0, 1, n)
    return (
        stated,
        (draw.uniform(0, 1, n) < stated**2).astype(float),
        [f"s{i // 2}" for i in range(n)],
    )


@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_calibration_lowers_the_brier_score_and_keeps_the_order(method: str) -> None:
    stated, real, scenes = drawn()
    fitted = cross_fit_calibration(stated, real, scenes, method=method, seed=0)  # type: ignore[arg-type]
    assert fitted.brier[1] < fitted.brier[0] < fitted.brier[2]
    assert fitted.brier[0] < fitted.brier_before[0]
    assert fitted.brier_before[0] == pytest.approx(brier_score_loss(real, stated))
    applied = [calibration(method, fitted).apply(p) for p in np.linspace(0, 1, 101)]
    assert applied == sorted(applied)
    assert 0 <= applied[0] <= applied[-1] <= 1
    assert np.mean(np.abs(np.array(applied) - np.linspace(0, 1, 101) ** 2)) < 0.08


def calibration(method: str, fitted: object) -> RewardCalibration:
    names = ("stated", "corrected", "brier", "brier_before")
    return RewardCalibration(
        reviewer="scripted",
        protocol=str(get_protocol("reality").instrument),
        condition=str(Condition()),
        parser="lenient",
        method=method,  # type: ignore[arg-type]
        n_clips=400,
        n_scenes=200,
        **{name: getattr(fitted, name) for name in names},
    )


def test_the_final_curve_is_that_of_scikit_learn() -> None:
    stated, real, scenes = drawn()
    fitted = cross_fit_calibration(stated, real, scenes, method="isotonic", seed=0)
    curve = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(stated, real)
    at = np.linspace(0, 1, 33)
    ours = [calibration("isotonic", fitted).apply(p) for p in at]
    assert ours == pytest.approx(curve.predict(at))


def test_scenes_are_not_shared_between_folds() -> None:
    """Clips of one scene have one label and one probability: a fit that sees the scene would know the label."""
    draw = np.random.default_rng(1)
    stated = np.repeat(draw.uniform(0, 1, 60), 5)
    real = np.repeat((draw.uniform(0, 1, 60) < 0.5).astype(float), 5)
    scenes = [f"s{i // 5}" for i in range(300)]
    by_scene = cross_fit_calibration(stated, real, scenes, method="isotonic", seed=0)
    by_clip = cross_fit_calibration(
        stated, real, [str(i) for i in range(300)], method="isotonic", seed=0
    )
    assert by_scene.brier[0] > by_clip.brier[0]
    assert by_scene.brier[0] > 0.24


def test_too_few_scenes_are_refused() -> None:
    with pytest.raises(InvalidSettingError, match="at least 2 scenes"):
        cross_fit_calibration(
            np.array([0.1, 0.9]), np.array([0.0, 1.0]), ["a", "b"], method="platt", seed=0
        )
    with pytest.raises(InvalidSettingError):
        cross_fit_calibration(np.array([]), np.array([]), [], method="platt", seed=0)


def test_a_stored_calibration_is_applied_and_marks_the_reward(tmp_path: Path, clip: Path) -> None:
    fitted = cross_fit_calibration(*drawn(), method="isotonic", seed=0)
    path = tmp_path / "calibration.json"
    calibration("isotonic", fitted).write(path)
    stored = read_calibration(path)
    assert stored == calibration("isotonic", fitted)
    reviewer = ScriptedReviewer()
    with RewardModel(reviewer, protocols=["reality"], trusted=True, calibration=stored) as model:
        reward = model.score(clip)
    assert reward.calibrated
    assert reward.value == stored.apply(reward_label(reviewer))


def reward_label(reviewer: ScriptedReviewer) -> float:
    return {"<answer>0</answer>": 0.0, "<answer>1</answer>": 1.0}[str(reviewer.answers["reality"])]


def test_a_calibration_of_other_questions_is_refused(tmp_path: Path) -> None:
    fitted = cross_fit_calibration(*drawn(), method="platt", seed=0)
    for protocols, condition in ((["trace"], {}), (["reality"], {"sampling": "uniform-4"})):
        with pytest.raises(InvalidSettingError, match="fitted for scripted, reality@"):
            RewardModel(
                ScriptedReviewer(),
                protocols=protocols,
                condition=condition,  # type: ignore[arg-type]
                calibration=calibration("platt", fitted),
            )
    path = tmp_path / "other.json"
    path.write_text(json.dumps({"form": "other"}))
    with pytest.raises(UnreadableSourceError, match="no calibration"):
        read_calibration(path)
