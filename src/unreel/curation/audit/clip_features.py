"""Audit features of clips as named numbers, and texts that describe a feature for each label."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from unreel.core.clip import ClipFacts
from unreel.core.failure import Failure
from unreel.curation.watermark.detection import ReadText, WatermarkSearchResult
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

    def crop(plane: Floats) -> Floats:
        height, width = plane.shape
        top, left = max(0, (height - SIDE) // 2), max(0, (width - SIDE) // 2)
        return plane[top : top + SIDE, left : left + SIDE]

    middle = crop(grey)
    noise = middle - ndimage.median_filter(middle, size=3)
    colours = [crop(red - grey), crop(blue - grey)]
    colour_noise = [(plane - ndimage.uniform_filter(plane, size=3)).std() for plane in colours]
    half = ndimage.zoom(grey, 0.5, order=1)
    full_edges, half_edges = (
        np.hypot(ndimage.sobel(plane, 0), ndimage.sobel(plane, 1)).mean() for plane in (grey, half)
    )
    # The kurtosis is computed here because scipy.stats loads slowly.
    squares = (noise - noise.mean()) ** 2
    tails = _compute_floored_log((squares**2).mean() / squares.mean() ** 2) if noise.any() else 0.0
    features = {
        "noise": _compute_floored_log(noise.std()),
        "noise tails": tails,
        "noise across": _compute_correlation(noise[:, 1:], noise[:, :-1]),
        "noise down": _compute_correlation(noise[1:], noise[:-1]),
        "colour noise": _compute_floored_log(np.mean(colour_noise)),
    }
    features |= _measure_blockiness(grey) | _measure_spectrum(middle)
    features["sharpness"] = _compute_floored_log(full_edges)
    features["sharpness lost"] = features["sharpness"] - _compute_floored_log(half_edges)
    means, brightest = planes.mean(axis=(0, 1)), planes.max(axis=2)
    saturation = (brightest - planes.min(axis=2)) / (brightest + 1)
    features |= {
        "brightness": float(grey.mean()),
        "contrast": float(grey.std()),
        "saturation": float(saturation.mean()),
        "cast red": float(means[0] - means[1]),
        "cast blue": float(means[2] - means[1]),
        "black share": float((grey < _DARK / 4).mean()),
        "white share": float((grey > _BRIGHT).mean()),
    }
    for name, lines in (("across", grey.max(axis=0)), ("down", grey.max(axis=1))):
        # The fraction of lines before the first and after the last bright line.
        bright = np.flatnonzero(lines > _DARK)
        share = 1 - (bright[-1] - bright[0] + 1) / len(lines) if bright.size else 1.0
        features[f"border {name}"] = share
    return features


def _compute_floored_log(value: float | np.floating) -> float:
    return math.log(max(float(value), 0.0) + _FLOOR)


def _compute_correlation(some: Floats, others: Floats) -> float:
    return float((some * others).mean() / ((some**2).mean() + _FLOOR))


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
    peak = 0.0
    if fine.size:
        peak = _compute_floored_log(fine.max()) - _compute_floored_log(np.median(fine))
    return found | {"spectrum peak": peak}


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
MIN_HOLDERS = 3
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
    common = sorted(name for name, n in holders.items() if n >= MIN_HOLDERS)
    columns = [np.array([features.get(name, 0.0) for features in clips]) for name in common]
    known = [(n, c) for n, c in zip(common, columns, strict=True) if len(np.unique(c)) > 1]
    fifths = []
    for name, column in known:
        if len(np.unique(column)) > N_BINS:
            borders = np.unique(np.quantile(column, np.arange(1, N_BINS) / N_BINS))
            bins = np.searchsorted(borders, column, side="right")
            fifths += [(name, (bins == i).astype(np.float64)) for i in np.unique(bins)]
    both = [*known, *fifths]
    raw = np.array([column for _, column in both]).reshape(len(both), len(clips)).T
    return FeatureTable(
        tuple(n for n, _ in both), raw, (False,) * len(known) + (True,) * len(fifths)
    )


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
            watermarks = clip_data.watermarks
            if isinstance(watermarks, Failure):
                return watermarks
            features = {
                "marks": float(bool(watermarks.found)),
                "marked texts": float(any(mark.text for mark in watermarks.found)),
                "suspected texts": float(bool(watermarks.suspected)),
                "roaming texts": float(bool(watermarks.roaming)),
                "any overlay": float(
                    bool(watermarks.found or watermarks.suspected or watermarks.roaming)
                ),
            }
            for mark in (*watermarks.found, *watermarks.suspected):
                box = mark.box
                x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
                column = ("left", "middle", "right")[min(2, int(x * 3))]
                row = ("top", "middle", "bottom")[min(2, int(y * 3))]
                features[f"place={'centre' if row == column else f'{row} {column}'}"] = 1.0
                if mark.text:
                    features[f"says={mark.text.casefold()}"] = 1.0
            return features


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


_LOG = "log "


def describe_property_by_label(table: FeatureTable, made: Mask) -> tuple[str, str]:
    """Describe the feature of `table` that differs most between generated (`made`) and real clips.

    The texts, for generated and for real clips, give the percentage of clips that have the feature,
    or its median.
    """
    measured = [i for i, is_bin in enumerate(table.is_bin) if not is_bin]

    def compute_rank_gap(i: int) -> float:
        generated, real = table.raw[made, i], table.raw[~made, i]
        return abs(float(np.sign(generated[:, None] - real[None]).mean())) / 2

    best = max(measured, key=compute_rank_gap)
    name, column = table.names[best], table.raw[:, best]
    is_share = set(np.unique(column)) <= {0.0, 1.0}

    def describe(values: Array) -> str:
        if is_share:
            return f"{values.mean():.0%} {name}"
        median = float(np.median(values))
        if name.startswith(_LOG):
            return f"median {math.exp(median):.3g} {name.removeprefix(_LOG)}"
        return f"median {median:.3g} {name}"

    return describe(column[made]), describe(column[~made])
