"""What each model is shown of a clip, as named numbers."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

import numpy as np

from unreel.core.facts import ClipFacts
from unreel.core.failure import Failure
from unreel.curate.audit.cross_fit import Subject
from unreel.curate.audit.observation import Observation
from unreel.curate.watermark.mark import Mark, Watermarks
from unreel.reviewers.floors.fitting import Features
from unreel.reviewers.floors.metadata import stream_features


class View(StrEnum):
    """What a model may know. The words are stored: add, never rename."""

    METADATA = "metadata"
    FRAME = "frame"
    WATERMARK = "watermark"


N_BINS: Final = 5
LEAST_HOLDERS: Final = 3
"""A feature that fewer clips have teaches nothing about the others."""
_BIN: Final = " #"

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
    name = feature.partition("=")[0].partition(_BIN)[0]
    return _FAMILIES.get(name, name)


def is_bin(feature: str) -> bool:
    """True for subject of the numbers that `with_bins` adds."""
    return _BIN in feature


def view_features(observation: Observation, view: View) -> Features | Failure:
    """What the model of `view` is shown of the clip."""
    match view:
        case View.METADATA:
            facts = observation.facts
            return facts if isinstance(facts, Failure) else metadata_features(facts)
        case View.FRAME:
            return observation.frame
        case View.WATERMARK:
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


def _marks(marks: Watermarks) -> Iterator[tuple[str, float]]:
    yield "marks", float(bool(marks.found))
    yield "marked texts", float(any(mark.text for mark in marks.found))
    yield "suspected texts", float(bool(marks.suspected))
    yield "roaming texts", float(bool(marks.roaming))
    yield "any overlay", float(bool(marks.found or marks.suspected or marks.roaming))
    for mark in (*marks.found, *marks.suspected):
        yield f"place={_place(mark)}", 1.0
        if mark.text:
            yield f"says={mark.text.casefold()}", 1.0


def _place(mark: Mark) -> str:
    box = mark.box
    across, down = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    column = ("left", "middle", "right")[min(2, int(across * 3))]
    row = ("top", "middle", "bottom")[min(2, int(down * 3))]
    return "centre" if row == column else f"{row} {column}"


def with_bins(subjects: Sequence[Subject]) -> list[Subject]:
    """`subjects` without features that are rare or the same for all, and with the fifths of all that is measured on a scale.

    The fifths let a model that adds up features see a value that is typical in the middle: all
    generated clips lasting five seconds, say, and real ones less or more.
    """
    holders = Counter(
        name for subject in subjects for name, value in subject.features.items() if value
    )
    known = [
        name
        for name, n in sorted(holders.items())
        if n >= LEAST_HOLDERS and len({subject.features.get(name, 0.0) for subject in subjects}) > 1
    ]
    table = np.array([[subject.features.get(name, 0.0) for name in known] for subject in subjects])
    table = table.reshape(len(subjects), len(known))
    bins: dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]] = {}
    for name, column in zip(known, table.T, strict=True):
        if len(np.unique(column)) > N_BINS:
            borders = np.unique(np.quantile(column, np.arange(1, N_BINS) / N_BINS))
            bins[name] = np.searchsorted(borders, column, side="right")
    return [
        Subject(
            name=subject.name,
            creator=subject.creator,
            group=subject.group,
            features=dict(zip(known, row, strict=True))
            | {f"{name}{_BIN}{own[i] + 1}": 1.0 for name, own in bins.items()},
        )
        for i, (subject, row) in enumerate(zip(subjects, table.tolist(), strict=True))
    ]
