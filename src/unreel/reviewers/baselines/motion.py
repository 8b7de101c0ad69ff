"""The `motion` baseline: it predicts labels from the irregularity of changes between frames."""

import io
import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unreel.core.failure import Failure, FailureReason
from unreel.reviewers.baselines.fitting import (
    BaselineTrainingClip,
    Features,
    FittedBaselineReviewer,
    cross_fit_baseline,
)
from unreel.reviewers.contract import ClipInput, InputKind

SIDE = 64
"""Side in pixels of the grey squares to which frames are reduced, to compare motion and not texture."""
MIN_FRAMES = 3
_FLOOR = 1e-3


def fit_motion_baseline(
    clips: Iterable[BaselineTrainingClip], *, seed: int = 0
) -> FittedBaselineReviewer:
    """Fit the motion baseline on the frames of clips; query it with the same frame sampling."""
    wants = frozenset({InputKind.FRAMES})
    return cross_fit_baseline(
        clips, kind="motion", wants=wants, extract=compute_motion_features, seed=seed
    )


def compute_motion_features(clip_input: ClipInput) -> Features | Failure:
    """Compute size, spread, unevenness of frame differences; a failure if frames are few or undecodable."""
    if len(clip_input.frames) < MIN_FRAMES:
        detail = f"not asked: motion needs {MIN_FRAMES} frames, got {len(clip_input.frames)}"
        return Failure(FailureReason.REQUEST_REJECTED, detail)
    try:
        frames = np.stack([_decode_grey_image(frame.jpeg) for frame in clip_input.frames])
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        return Failure(
            FailureReason.UNDECODABLE, f"a frame cannot be decoded ({type(error).__name__})"
        )
    steps = np.diff(frames, axis=0)
    bends = np.diff(steps, axis=0)
    first, second = _measure_frame_changes(steps), _measure_frame_changes(bends)
    return {
        "log first": _compute_safe_log(first.mean()),
        "log second": _compute_safe_log(second.mean()),
        "log second over first": _compute_safe_log(second.mean()) - _compute_safe_log(first.mean()),
        "first unevenness": float(first.std() / (first.mean() + _FLOOR)),
        "second unevenness": float(second.std() / (second.mean() + _FLOOR)),
        "log second spread": _compute_safe_log(bends.std()),
        "log second peak": _compute_safe_log(np.quantile(np.abs(bends), 0.99)),
        "still share": float((np.abs(steps) < 1 / 255).mean()),
    }


def _decode_grey_image(jpeg: bytes) -> NDArray[np.float64]:
    with Image.open(io.BytesIO(jpeg), formats=["JPEG"]) as picture:
        picture.draft("L", (SIDE, SIDE))  # decodes at a reduced size
        small = picture.convert("L").resize((SIDE, SIDE), Image.Resampling.BOX)
    return np.asarray(small, dtype=np.float64) / 255


def _measure_frame_changes(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    sizes: NDArray[np.float64] = np.abs(differences).mean(axis=(1, 2))
    return sizes


def _compute_safe_log(value: float | np.floating) -> float:
    return math.log(float(value) + _FLOOR)
