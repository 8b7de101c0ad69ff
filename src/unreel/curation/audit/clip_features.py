"""Audit features of clips as named numbers, and texts that describe a feature for each label."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import numpy as np

from unreel.core.clip import ClipFacts
from unreel.core.failure import Failure
from unreel.curation.audit.cross_fit import Mask
from unreel.curation.audit.frame_features import compute_frame_features
from unreel.curation.watermark.regions_and_ocr import (
    ReadText,
    WatermarkRegion,
    WatermarkSearchResult,
)
from unreel.media.reader import MediaReader
from unreel.reviewers.baselines.fitting import Features
from unreel.reviewers.baselines.metadata import compute_metadata_features
from unreel.stats.row_sample import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipAuditData:
    """Input data of a label audit for one clip. A part that could not be read is a `Failure`."""

    clip: str
    """Unique name or identifier of the clip for reports."""
    creator: str | None
    """Creator of the clip; `None` for a real clip."""
    group: str = ""
    """Scene or source that the clip shares with others; "" if it shares none."""
    facts: ClipFacts | Failure
    frame: Features | Failure
    """Features of the middle frame, from `compute_frame_features`."""
    watermarks: WatermarkSearchResult | Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAuditData:
    """Input data of a temporal audit for one window of a clip."""

    clip: str
    """Unique name of the window: name of the clip and start of the window."""
    creator: str | None
    """`SEGMENT` for a window of which half or more is generated; `None` for a real one."""
    group: str
    """Scene or source that the window shares with others."""
    pair: str
    """Pair of parts of a clip, one with a segment and one without, with the same number of windows each."""
    features: Features


SEGMENT: Final = "segment"
"""Creator of windows inside generated segments."""


def read_clip_audit_data(
    path: Path,
    *,
    clip: str,
    creator: str | None,
    group: str = "",
    reader: MediaReader,
    read_text: ReadText | None = None,
) -> ClipAuditData:
    """Read the input of a label audit from the clip at `path`: properties, a frame and watermarks.

    Text in frames is recognised only if `read_text` is given.
    """
    middle = reader.frames(path, sampling="uniform-1", encoding="rgb24")
    from unreel.curation.watermark.clip_watermarks import find_clip_watermarks  # loads scipy.signal

    return ClipAuditData(
        clip=clip,
        creator=creator,
        group=group,
        facts=reader.probe(path),
        frame=middle
        if isinstance(middle, Failure)
        else compute_frame_features(middle.frames[0].rgb()),
        watermarks=find_clip_watermarks(path, reader=reader, read_text=read_text),
    )


N_BINS: Final = 5
LEAST_HOLDERS: Final = 3
"""Minimum number of clips with a nonzero value of a feature; rarer features are omitted."""


@dataclass(frozen=True, slots=True, eq=False)
class FeatureTable:
    """Table of feature values, one row per clip and one column per feature or quintile of a feature.

    The values do not depend on labels.
    """

    names: tuple[str, ...]
    """Names of the columns; the quintiles of a feature have its name."""
    raw: Array
    """Measured values; for a quintile, whether the clip is in it."""
    is_bin: tuple[bool, ...]

    @property
    def scaled(self) -> Array:
        """Return the feature columns standardised to mean 0 and standard deviation 1."""
        spread = self.raw.std(axis=0)
        scaled: Array = (self.raw - self.raw.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        return scaled

    def only(self, chosen: Sequence[int]) -> "FeatureTable":
        """Return the table with only the columns at the indices `chosen`."""
        own = list(chosen)
        names, bins = zip(*((self.names[i], self.is_bin[i]) for i in own), strict=True)
        return FeatureTable(names, self.raw[:, own], bins)


def build_feature_table(clips: Sequence[Features]) -> FeatureTable:
    """Build the feature table of `clips`, without rare and constant features.

    Features with more than five values also get a column for each quintile. Quintiles let a linear
    model detect a typical middle value: for example, if all generated clips last five seconds and
    real clips last less or more.
    """
    holders = Counter(name for features in clips for name, value in features.items() if value)
    common = sorted(name for name, n in holders.items() if n >= LEAST_HOLDERS)
    columns = [np.array([features.get(name, 0.0) for features in clips]) for name in common]
    known = [(n, c) for n, c in zip(common, columns, strict=True) if len(np.unique(c)) > 1]
    fifths = [(name, own) for name, column in known for own in _build_quintile_columns(column)]
    both = [*known, *fifths]
    raw = np.array([column for _, column in both]).reshape(len(both), len(clips)).T
    return FeatureTable(
        tuple(n for n, _ in both), raw, (False,) * len(known) + (True,) * len(fifths)
    )


def _build_quintile_columns(column: Array) -> list[Array]:
    if len(np.unique(column)) <= N_BINS:
        return []
    borders = np.unique(np.quantile(column, np.arange(1, N_BINS) / N_BINS))
    own = np.searchsorted(borders, column, side="right")
    return [(own == i).astype(np.float64) for i in np.unique(own)]


class AuditFeatureSet(StrEnum):
    """Kind of features that one audit model uses. The values are stored: add, never rename."""

    METADATA = "metadata"
    FRAME = "frame"
    WATERMARK = "watermark"
    WINDOW = "window"
    """Features of windows of long clips, not of whole clips."""


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


def get_feature_property(feature: str) -> str:
    """Return the name of the clip property that `feature` measures, such as "length"."""
    name = feature.partition("=")[0]
    return _FAMILIES.get(name, name)


def get_audit_features(
    observation: ClipAuditData | WindowAuditData, view: AuditFeatureSet
) -> Features | Failure:
    """Return the clip's features of the feature set `view`, or the failure to read them."""
    if isinstance(observation, WindowAuditData):
        return observation.features
    match view:
        case AuditFeatureSet.METADATA:
            facts = observation.facts
            return facts if isinstance(facts, Failure) else compute_audit_metadata_features(facts)
        case AuditFeatureSet.FRAME:
            return observation.frame
        case AuditFeatureSet.WATERMARK:
            marks = observation.watermarks
            return marks if isinstance(marks, Failure) else dict(_iter_watermark_features(marks))
        case AuditFeatureSet.WINDOW:
            return {}


def compute_audit_metadata_features(facts: ClipFacts) -> Features:
    """Return the metadata baseline's features, plus exact size, length and tags of the file."""
    video = facts.video
    exact = {
        f"size={video.width}x{video.height}": 1.0,
        f"length={round(float(video.duration_s), 1)} s": 1.0,
        f"frames={video.n_frames}": 1.0,
    }
    tags = {f"tag {tag.name}": 1.0 for tag in facts.tags}
    words = {f"tag {tag.name}={tag.value}": 1.0 for tag in facts.tags if tag.value}
    return {**compute_metadata_features(facts), **exact, **tags, **words}


def _iter_watermark_features(marks: WatermarkSearchResult) -> Iterator[tuple[str, float]]:
    yield "marks", float(bool(marks.found))
    yield "marked texts", float(any(mark.text for mark in marks.found))
    yield "suspected texts", float(bool(marks.suspected))
    yield "roaming texts", float(bool(marks.roaming))
    yield "any overlay", float(bool(marks.found or marks.suspected or marks.roaming))
    for mark in (*marks.found, *marks.suspected):
        yield f"place={_format_watermark_position(mark)}", 1.0
        if mark.text:
            yield f"says={mark.text.casefold()}", 1.0


def _format_watermark_position(mark: WatermarkRegion) -> str:
    box = mark.box
    across, down = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    column = ("left", "middle", "right")[min(2, int(across * 3))]
    row = ("top", "middle", "bottom")[min(2, int(down * 3))]
    return "centre" if row == column else f"{row} {column}"


_LOG = "log "


@dataclass(frozen=True, slots=True)
class PropertyTextByLabel:
    """Text that describes one property for generated clips, and one for real clips."""

    generated: str
    real: str


def describe_property_by_label(table: FeatureTable, made: Mask) -> PropertyTextByLabel:
    """Describe the feature of `table` that differs most between generated (`made`) and real clips.

    The texts give the percentage of clips that have the feature, or its median, for each label.
    """
    measured = [i for i, is_bin in enumerate(table.is_bin) if not is_bin]
    best = max(measured, key=lambda i: _compute_rank_gap(table.raw[made, i], table.raw[~made, i]))
    column = table.raw[:, best]
    tell = (
        _describe_feature_share
        if set(np.unique(column)) <= {0.0, 1.0}
        else _describe_feature_median
    )
    return PropertyTextByLabel(
        tell(table.names[best], column[made]), tell(table.names[best], column[~made])
    )


def _compute_rank_gap(some: Array, others: Array) -> float:
    """Return half of |P(some > others) - P(some < others)|: how far two samples differ in rank."""
    larger = np.sign(some[:, None] - others[None]).mean()
    return abs(float(larger)) / 2


def _describe_feature_share(name: str, column: Array) -> str:
    return f"{column.mean():.0%} {name}"


def _describe_feature_median(name: str, column: Array) -> str:
    middle = float(np.median(column))
    if name.startswith(_LOG):
        return f"median {math.exp(middle):.3g} {name.removeprefix(_LOG)}"
    return f"median {middle:.3g} {name}"
