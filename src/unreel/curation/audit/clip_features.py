"""Audit features of clips as named numbers, and texts that describe a feature for each label."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from unreel.core.clip import ClipFacts
from unreel.core.failure import Failure
from unreel.curation.watermark.detection import ReadText, WatermarkRegion, WatermarkSearchResult
from unreel.media.decode import Rgb
from unreel.media.reader import MediaReader
from unreel.reviewers.baselines.fitting import Features
from unreel.reviewers.baselines.metadata import compute_metadata_features
from unreel.stats.row_sample import Array

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

SIDE = 512
"""Side in pixels of the central square, at full scale, for the measurement of spectrum and noise."""
_FLOOR = 1e-4
_OCTAVES = 4
_DARK = 20
_BRIGHT = 250


def compute_frame_features(rgb: Rgb) -> Features:
    """Compute the features in the module's table for one frame at its own size; ratios are logarithms."""
    planes = rgb.astype(np.float32)
    red, green, blue = planes[..., 0], planes[..., 1], planes[..., 2]
    grey = 0.299 * red + 0.587 * green + 0.114 * blue
    return (
        _measure_noise(_crop_middle(grey))
        | _measure_colour_noise(_crop_middle(red - grey), _crop_middle(blue - grey))
        | _measure_blockiness(grey)
        | _measure_spectrum(_crop_middle(grey))
        | _measure_sharpness(grey)
        | _measure_colour(planes, grey)
        | _measure_borders(grey)
    )


def _crop_middle(plane: Floats) -> Floats:
    height, width = plane.shape
    top, left = max(0, (height - SIDE) // 2), max(0, (width - SIDE) // 2)
    return plane[top : top + SIDE, left : left + SIDE]


def _compute_floored_log(value: float | np.floating) -> float:
    return math.log(max(float(value), 0.0) + _FLOOR)


def _measure_noise(grey: Floats) -> dict[str, float]:
    noise = grey - ndimage.median_filter(grey, size=3)
    return {
        "noise": _compute_floored_log(noise.std()),
        "noise tails": _compute_floored_log(_compute_kurtosis(noise)) if noise.any() else 0.0,
        "noise across": _compute_correlation(noise[:, 1:], noise[:, :-1]),
        "noise down": _compute_correlation(noise[1:], noise[:-1]),
    }


def _compute_kurtosis(noise: Floats) -> float:
    """Return the kurtosis of the noise. It is computed here because scipy.stats loads slowly."""
    squares = (noise - noise.mean()) ** 2
    return float((squares**2).mean() / squares.mean() ** 2)


def _compute_correlation(some: Floats, others: Floats) -> float:
    return float((some * others).mean() / ((some**2).mean() + _FLOOR))


def _measure_colour_noise(red: Floats, blue: Floats) -> dict[str, float]:
    spread = [(plane - ndimage.uniform_filter(plane, size=3)).std() for plane in (red, blue)]
    return {"colour noise": _compute_floored_log(np.mean(spread))}


def _measure_blockiness(grey: Floats) -> dict[str, float]:
    across = np.abs(np.diff(grey, axis=1)).mean(axis=0)
    down = np.abs(np.diff(grey, axis=0)).mean(axis=1)
    found = {}
    for size in (8, 16):
        steps = [
            _compute_floored_log(line[size - 1 :: size].mean())
            - _compute_floored_log(np.delete(line, np.s_[size - 1 :: size]).mean())
            for line in (across, down)
            if len(line) >= 2 * size
        ]
        found[f"blocks {size}"] = float(np.mean(steps)) if steps else 0.0
    return found


def _measure_spectrum(grey: Floats) -> dict[str, float]:
    height, width = grey.shape
    window = np.hanning(height)[:, None] * np.hanning(width)[None]
    power = np.abs(np.fft.rfft2((grey - grey.mean()) * window)) ** 2
    away = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None])
    total = power.sum() + _FLOOR
    found = {}
    for octave in range(_OCTAVES):
        inside = (away <= 0.5 / 2**octave) & (away > 0.25 / 2**octave)
        found[f"spectrum {octave}"] = _compute_floored_log(power[inside].sum() / total * 1e3)
    fine = power[(away <= 0.5) & (away > 0.2)]  # noqa: PLR2004  where pictures hold little
    peak = (
        _compute_floored_log(fine.max()) - _compute_floored_log(np.median(fine))
        if fine.size
        else 0.0
    )
    return found | {"spectrum peak": peak}


def _measure_sharpness(grey: Floats) -> dict[str, float]:
    half = ndimage.zoom(grey, 0.5, order=1)
    full_edges, half_edges = (
        np.hypot(ndimage.sobel(plane, 0), ndimage.sobel(plane, 1)).mean() for plane in (grey, half)
    )
    return {
        "sharpness": _compute_floored_log(full_edges),
        "sharpness lost": _compute_floored_log(full_edges) - _compute_floored_log(half_edges),
    }


def _measure_colour(planes: Floats, grey: Floats) -> dict[str, float]:
    means = planes.mean(axis=(0, 1))
    top = planes.max(axis=2)
    return {
        "brightness": float(grey.mean()),
        "contrast": float(grey.std()),
        "saturation": float(((top - planes.min(axis=2)) / (top + 1)).mean()),
        "cast red": float(means[0] - means[1]),
        "cast blue": float(means[2] - means[1]),
        "black share": float((grey < _DARK / 4).mean()),
        "white share": float((grey > _BRIGHT).mean()),
    }


def _measure_borders(grey: Floats) -> dict[str, float]:
    return {
        "border across": _compute_dark_border_share(grey.max(axis=0)),
        "border down": _compute_dark_border_share(grey.max(axis=1)),
    }


def _compute_dark_border_share(lines: Floats) -> float:
    """Return the fraction of lines before the first and after the last bright line; 1 if all are dark."""
    bright = np.flatnonzero(lines > _DARK)
    return 1 - (bright[-1] - bright[0] + 1) / len(lines) if bright.size else 1.0


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
    from unreel.curation.watermark.step import find_clip_watermarks  # loads scipy.signal

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


N_BINS = 5
LEAST_HOLDERS = 3
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


_FAMILIES: Mapping[str, str] = {
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
    clip_data: ClipAuditData, feature_set: AuditFeatureSet
) -> Features | Failure:
    """Return the clip's features of the feature set `feature_set`, or the failure to read them."""
    match feature_set:
        case AuditFeatureSet.METADATA:
            facts = clip_data.facts
            return facts if isinstance(facts, Failure) else compute_audit_metadata_features(facts)
        case AuditFeatureSet.FRAME:
            return clip_data.frame
        case AuditFeatureSet.WATERMARK:
            marks = clip_data.watermarks
            return marks if isinstance(marks, Failure) else dict(_iter_watermark_features(marks))


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


def _iter_watermark_features(watermarks: WatermarkSearchResult) -> Iterator[tuple[str, float]]:
    yield "marks", float(bool(watermarks.found))
    yield "marked texts", float(any(mark.text for mark in watermarks.found))
    yield "suspected texts", float(bool(watermarks.suspected))
    yield "roaming texts", float(bool(watermarks.roaming))
    yield "any overlay", float(bool(watermarks.found or watermarks.suspected or watermarks.roaming))
    for mark in (*watermarks.found, *watermarks.suspected):
        yield f"place={_format_watermark_position(mark)}", 1.0
        if mark.text:
            yield f"says={mark.text.casefold()}", 1.0


def _format_watermark_position(region: WatermarkRegion) -> str:
    box = region.box
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
