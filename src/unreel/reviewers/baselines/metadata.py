"""The `metadata` baseline: predicts from file properties, without the picture."""

import math
from collections.abc import Iterable

from unreel.core.clip import ClipFacts
from unreel.reviewers.baselines.fitting import (
    BaselineTrainingClip,
    Features,
    FittedBaselineReviewer,
    cross_fit_baseline,
)
from unreel.reviewers.contract import ClipInput


def fit_metadata_baseline(
    clips: Iterable[BaselineTrainingClip], *, seed: int = 0
) -> FittedBaselineReviewer:
    """Fit the metadata baseline; its accuracy shows how far file properties reveal the labels."""
    return cross_fit_baseline(
        clips, kind="metadata", wants=frozenset(), extract=_extract_clip_metadata, seed=seed
    )


def _extract_clip_metadata(clip_input: ClipInput) -> Features:
    return compute_metadata_features(clip_input.clip.facts)


def compute_metadata_features(facts: ClipFacts) -> Features:
    """Return container, codecs, picture size, frame rate, duration and audio of a clip as features."""
    video = facts.video
    seconds = max(float(video.duration_s), 0.001)
    pixels = video.width * video.height
    n_bits = 8 * max(facts.size_bytes, 1)
    features = {
        "log seconds": math.log(seconds),
        "log pixels": math.log(pixels),
        "log aspect": math.log(video.width / video.height),
        "log rate": math.log(max(float(video.average_rate), 0.1)),
        "log bits per second": math.log(n_bits / seconds),
        "log bits per pixel": math.log(n_bits / (pixels * max(video.n_frames, 1))),
        "variable rate": float(video.variable_rate),
        "turned": float(video.rotation_deg != 0),
        "starts late": float(video.first_at_s > 0),
        "sides by 16": float(video.width % 16 == video.height % 16 == 0),
        "sides by 64": float(video.width % 64 == video.height % 64 == 0),
        f"rate={round(float(video.average_rate), 1)}": 1.0,
        f"container={facts.container}": 1.0,
        f"codec={video.codec}": 1.0,
        f"pixels={video.pixel_format}": 1.0,
        "sound": float(bool(facts.audio)),
    }
    for audio in facts.audio[:1]:
        features[f"sound codec={audio.codec}"] = 1.0
        features[f"sound rate={audio.sample_rate_hz}"] = 1.0
        features[f"sound channels={audio.channels}"] = 1.0
        features["sound outlasts"] = float(audio.duration_s - video.duration_s)
    return features
