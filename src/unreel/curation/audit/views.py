"""Features of each model as named numbers."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from unreel.core.facts import ClipFacts
from unreel.core.failure import Failure
from unreel.curation.audit.observation import ClipObservation
from unreel.curation.watermark.mark import WatermarkRegion, WatermarkSearch
from unreel.reviewers.floors.fitting import Features
from unreel.reviewers.floors.metadata import stream_features


class FeatureView(StrEnum):
    """Feature set of a model. The values are stored: add, never rename."""

    METADATA = "metadata"
    FRAME = "frame"
    WATERMARK = "watermark"


_FAMILIES: Final[Mapping[str, str]] = {
    "log seconds": "length",
    "length": "length",
    "frames": "length",
    "log pixels": "size",
    "log aspect": "size",
    "size": "size",
    "sides by 16": "size",
    "sides by 64": "size",
    "log rate": "frame rate",
    "rate": "frame rate",
    "variable rate": "frame rate",
    "log bits per second": "bit rate",
    "log bits per pixel": "bit rate",
    "pixels": "pixel format",
    "turned": "rotation",
    "starts late": "start",
    "sound": "sound",
    "sound codec": "sound",
    "sound rate": "sound",
    "sound channels": "sound",
    "sound outlasts": "sound",
}


def family(feature: str) -> str:
    """The property of a clip that `feature` is one number of."""
    name = feature.partition("=")[0]
    return _FAMILIES.get(name, name)


def view_features(observation: ClipObservation, view: FeatureView) -> Features | Failure:
    """Return the features of the clip for the model of `view`."""
    match view:
        case FeatureView.METADATA:
            facts = observation.facts
            return facts if isinstance(facts, Failure) else metadata_features(facts)
        case FeatureView.FRAME:
            return observation.frame
        case FeatureView.WATERMARK:
            marks = observation.watermarks
            return marks if isinstance(marks, Failure) else dict(_marks(marks))


def metadata_features(facts: ClipFacts) -> Features:
    """The floor's numbers, with exact sizes, lengths and the tags of the file."""
    video = facts.video
    exact = {
        f"size={video.width}x{video.height}": 1.0,
        f"length={round(float(video.duration_s), 1)} s": 1.0,
        f"frames={video.n_frames}": 1.0,
    }
    tags = {f"tag {tag.name}": 1.0 for tag in facts.tags}
    words = {f"tag {tag.name}={tag.value}": 1.0 for tag in facts.tags if tag.value}
    return {**stream_features(facts), **exact, **tags, **words}


def _marks(marks: WatermarkSearch) -> Iterator[tuple[str, float]]:
    yield "marks", float(bool(marks.found))
    yield "marked texts", float(any(mark.text for mark in marks.found))
    yield "suspected texts", float(bool(marks.suspected))
    yield "roaming texts", float(bool(marks.roaming))
    yield "any overlay", float(bool(marks.found or marks.suspected or marks.roaming))
    for mark in (*marks.found, *marks.suspected):
        yield f"place={_place(mark)}", 1.0
        if mark.text:
            yield f"says={mark.text.casefold()}", 1.0


def _place(mark: WatermarkRegion) -> str:
    box = mark.box
    across, down = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    column = ("left", "middle", "right")[min(2, int(across * 3))]
    row = ("top", "middle", "bottom")[min(2, int(down * 3))]
    return "centre" if row == column else f"{row} {column}"
