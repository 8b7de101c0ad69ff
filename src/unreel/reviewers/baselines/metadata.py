"""The `metadata` baseline: predicts from file properties, without the picture."""

import math
from collections.abc import Iterable, Iterator

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


def compute_metadata_features(facts: ClipFacts) -> Features:
    """Return container, codecs, picture size, frame rate, duration and audio of a clip as features."""
    return dict(_iter_video_features(facts)) | dict(_iter_audio_features(facts))


def _extract_clip_metadata(clip_input: ClipInput) -> Features:
    return compute_metadata_features(clip_input.clip.facts)


def _iter_video_features(facts: ClipFacts) -> Iterator[tuple[str, float]]:
    video = facts.video
    seconds = max(float(video.duration_s), 0.001)
    pixels = video.width * video.height
    yield "log seconds", math.log(seconds)
    yield "log pixels", math.log(pixels)
    yield "log aspect", math.log(video.width / video.height)
    yield "log rate", math.log(max(float(video.average_rate), 0.1))
    yield "log bits per second", math.log(8 * max(facts.size_bytes, 1) / seconds)
    yield (
        "log bits per pixel",
        math.log(8 * max(facts.size_bytes, 1) / (pixels * max(video.n_frames, 1))),
    )
    yield "variable rate", float(video.variable_rate)
    yield "turned", float(video.rotation_deg != 0)
    yield "starts late", float(video.first_at_s > 0)
    for multiple in (16, 64):
        yield f"sides by {multiple}", float(video.width % multiple == video.height % multiple == 0)
    yield f"rate={round(float(video.average_rate), 1)}", 1.0
    yield f"container={facts.container}", 1.0
    yield f"codec={video.codec}", 1.0
    yield f"pixels={video.pixel_format}", 1.0


def _iter_audio_features(facts: ClipFacts) -> Iterator[tuple[str, float]]:
    yield "sound", float(bool(facts.audio))
    for audio in facts.audio[:1]:
        yield f"sound codec={audio.codec}", 1.0
        yield f"sound rate={audio.sample_rate_hz}", 1.0
        yield f"sound channels={audio.channels}", 1.0
        yield "sound outlasts", float(audio.duration_s - facts.video.duration_s)
