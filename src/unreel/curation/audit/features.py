"""Features of each model as named numbers."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import numpy as np

from unreel.core.facts import ClipFacts
from unreel.core.failure import Failure
from unreel.curation.audit.frame import frame_features
from unreel.curation.watermark.mark import WatermarkRegion, WatermarkSearch
from unreel.curation.watermark.text import ReadText
from unreel.media.reader import MediaReader
from unreel.reviewers.baselines.fitting import Features
from unreel.reviewers.baselines.metadata import stream_features
from unreel.stats.sample import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipObservation:
    """Audit data of one clip. A part that could not be read is a `Failure` and is excluded."""

    clip: str
    """Name or id, as reports should call it; unique."""
    creator: str | None
    """Who made it; `None` for a real clip."""
    group: str = ""
    """Clips of one group show one scene or share one source; "" for a clip on its own."""
    facts: ClipFacts | Failure
    frame: Features | Failure
    """`frame_features` of the frame in the middle."""
    watermarks: WatermarkSearch | Failure


def observe(
    path: Path,
    *,
    clip: str,
    creator: str | None,
    group: str = "",
    reader: MediaReader,
    read_text: ReadText | None = None,
) -> ClipObservation:
    """Read all audit data of the clip at `path`; text in frames is read only if `read_text` is given."""
    middle = reader.frames(path, sampling="uniform-1", encoding="rgb24")
    from unreel.curation.watermark.clip import find_clip_watermarks  # loads scipy.signal

    return ClipObservation(
        clip=clip,
        creator=creator,
        group=group,
        facts=reader.probe(path),
        frame=middle if isinstance(middle, Failure) else frame_features(middle.frames[0].rgb()),
        watermarks=find_clip_watermarks(path, reader=reader, read_text=read_text),
    )


N_BINS: Final = 5
LEAST_HOLDERS: Final = 3
"""A feature that fewer clips have teaches nothing about the others."""


@dataclass(frozen=True, slots=True, eq=False)
class FeatureTable:
    """One line for each clip. Nothing in it follows from labels, so it serves under any."""

    names: tuple[str, ...]
    """Of the columns; the fifths of a feature have its name."""
    raw: Array
    """Measured value; for a quintile, whether the clip is in it."""
    is_bin: tuple[bool, ...]

    @property
    def scaled(self) -> Array:
        """Return the columns with mean 0, in units of their standard deviation."""
        spread = self.raw.std(axis=0)
        scaled: Array = (self.raw - self.raw.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        return scaled

    def only(self, chosen: Sequence[int]) -> "FeatureTable":
        """Return the table of the columns at `chosen`."""
        own = list(chosen)
        names, bins = zip(*((self.names[i], self.is_bin[i]) for i in own), strict=True)
        return FeatureTable(names, self.raw[:, own], bins)


def tabulate(clips: Sequence[Features]) -> FeatureTable:
    """Build a table of `clips` without rare or constant features, and with quintiles of scale features.

    Quintiles let a linear model detect a typical middle value: for example, if all generated clips
    last five seconds and real clips last less or more.
    """
    holders = Counter(name for features in clips for name, value in features.items() if value)
    common = sorted(name for name, n in holders.items() if n >= LEAST_HOLDERS)
    columns = [np.array([features.get(name, 0.0) for features in clips]) for name in common]
    known = [(n, c) for n, c in zip(common, columns, strict=True) if len(np.unique(c)) > 1]
    fifths = [(name, own) for name, column in known for own in _build_bin_columns(column)]
    both = [*known, *fifths]
    raw = np.array([column for _, column in both]).reshape(len(both), len(clips)).T
    return FeatureTable(
        tuple(n for n, _ in both), raw, (False,) * len(known) + (True,) * len(fifths)
    )


def _build_bin_columns(column: Array) -> list[Array]:
    if len(np.unique(column)) <= N_BINS:
        return []
    borders = np.unique(np.quantile(column, np.arange(1, N_BINS) / N_BINS))
    own = np.searchsorted(borders, column, side="right")
    return [(own == i).astype(np.float64) for i in np.unique(own)]


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


def get_feature_family(feature: str) -> str:
    """Return the clip property that `feature` measures."""
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
            return marks if isinstance(marks, Failure) else dict(_iter_mark_features(marks))


def metadata_features(facts: ClipFacts) -> Features:
    """Return the features of the metadata baseline, with exact sizes, lengths and the tags of the file."""
    video = facts.video
    exact = {
        f"size={video.width}x{video.height}": 1.0,
        f"length={round(float(video.duration_s), 1)} s": 1.0,
        f"frames={video.n_frames}": 1.0,
    }
    tags = {f"tag {tag.name}": 1.0 for tag in facts.tags}
    words = {f"tag {tag.name}={tag.value}": 1.0 for tag in facts.tags if tag.value}
    return {**stream_features(facts), **exact, **tags, **words}


def _iter_mark_features(marks: WatermarkSearch) -> Iterator[tuple[str, float]]:
    yield "marks", float(bool(marks.found))
    yield "marked texts", float(any(mark.text for mark in marks.found))
    yield "suspected texts", float(bool(marks.suspected))
    yield "roaming texts", float(bool(marks.roaming))
    yield "any overlay", float(bool(marks.found or marks.suspected or marks.roaming))
    for mark in (*marks.found, *marks.suspected):
        yield f"place={_format_mark_position(mark)}", 1.0
        if mark.text:
            yield f"says={mark.text.casefold()}", 1.0


def _format_mark_position(mark: WatermarkRegion) -> str:
    box = mark.box
    across, down = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    column = ("left", "middle", "right")[min(2, int(across * 3))]
    row = ("top", "middle", "bottom")[min(2, int(down * 3))]
    return "centre" if row == column else f"{row} {column}"
