"""Encoding of a spliced video: all parts decoded, matched in grain and loudness, and encoded as one stream."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from unreel.core.clip import ClipFacts, ClipId
from unreel.core.errors import MediaError
from unreel.core.failure import Failure
from unreel.core.span import MICROSECONDS, TimeSpan, convert_to_microseconds
from unreel.core.trace import BoxAt, Trace
from unreel.curation.inject.clip_injection import align_clip_sound
from unreel.curation.splice.plan import SplicedPart
from unreel.media.decode import Rgb
from unreel.media.encode import SOUND_RATE_HZ, ClipWriter, SoundTrackSettings, VideoTrackSettings
from unreel.media.normalise import NormalisedClipFormat, fit_picture_inside
from unreel.media.reader import MediaReader
from unreel.media.render import crop_picture
from unreel.media.scan import compute_grey_levels
from unreel.media.sound import NoSound

Value = TypeVar("Value")
Floats = NDArray[np.float32]
Samples = NDArray[np.int16]
_CHUNK_BYTES: Final = 64 << 20
"""Frames of one request to the decoder."""
_MEASURED: Final = 5
"""Frames of a part in which the grain is measured."""
_BLOCK: Final = 16
_FLAT_SHARE: Final = 0.25
"""Fraction of the blocks of a frame that are flat enough to show grain alone."""
_LEAST_GRAIN: Final = 1.0
MOST_GRAIN: Final = 6.0
"""Standard deviation in grey levels: textured footage looks grainier than it is."""
_MOST_GAIN: Final = 10.0
_SILENT: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartLevels:
    """Grain to add to a part, as a standard deviation in grey levels, and its sound."""

    grain: float
    sound: Samples | None = None
    """48 kHz, one channel; None for silence."""


@dataclass(frozen=True, slots=True)
class SplicedPartReader:
    """Reader of the frames and the sound of parts, in the format of the spliced video."""

    reader: MediaReader
    files: Mapping[ClipId, Path]
    form: NormalisedClipFormat

    def frames(self, part: SplicedPart, indices: Sequence[int]) -> Iterator[tuple[Fraction, Rgb]]:
        """Yield the time of the source frame and the fitted picture for each output frame.

        An output frame shows the source frame at the middle of its display time.

        Raises:
            MediaError: The clip cannot be decoded.
        """
        video = self.facts(part).video
        n_chunk = max(1, _CHUNK_BYTES // (3 * video.width * video.height))
        for first in range(0, len(indices), n_chunk):
            moments = [
                int((part.start_s + (index + Fraction(1, 2)) / self.form.rate) * MICROSECONDS)
                for index in indices[first : first + n_chunk]
            ]
            frames = _require_success(self.reader.frames_at(self.files[part.clip], moments)).frames
            starts = [convert_to_microseconds(frame.at_s) for frame in frames]
            places = [max(0, bisect_right(starts, moment) - 1) for moment in moments]
            for place, repeats in groupby(places):
                rgb = crop_picture(frames[place].rgb(), part.crop)
                fitted = fit_picture_inside(rgb, width=self.form.width, height=self.form.height)
                for _ in repeats:
                    yield frames[place].at_s, fitted

    def facts(self, part: SplicedPart) -> ClipFacts:
        """Return the facts of the part's clip.

        Raises:
            MediaError: The clip cannot be read.
        """
        return _require_success(self.reader.probe(self.files[part.clip]))

    def grain(self, part: SplicedPart) -> float:
        """Return the median grain of some frames of the part."""
        count = min(_MEASURED, part.n_frames)
        indices = sorted({(2 * i + 1) * part.n_frames // (2 * count) for i in range(count)})
        window = part.mapping.shown_in
        rows = slice(round(window.y0 * self.form.height), round(window.y1 * self.form.height))
        columns = slice(round(window.x0 * self.form.width), round(window.x1 * self.form.width))
        levels = [measure_grain(fitted[rows, columns]) for _, fitted in self.frames(part, indices)]
        return float(np.median(levels))

    def sound(self, part: SplicedPart) -> Samples | None:
        """Return the sound of the part; `None` if the clip has none."""
        sound = self.reader.sound(self.files[part.clip])
        if isinstance(sound, NoSound):
            return None
        end_s = part.start_s + part.n_frames / self.form.rate
        return align_clip_sound(_require_success(sound), end_s=end_s)[
            int(part.start_s * SOUND_RATE_HZ) :
        ]


def measure_grain(rgb: Rgb) -> float:
    """Return the standard deviation of the noise in the flat blocks of a picture, in grey levels."""
    grey = compute_grey_levels(rgb).astype(np.float32)
    across = grey[:, :-2] - 2 * grey[:, 1:-1] + grey[:, 2:]
    fine = (across[:-2] - 2 * across[1:-1] + across[2:]) / 6
    rows, columns = (side // _BLOCK for side in fine.shape)
    if not rows or not columns:
        return float(fine.std()) if fine.size else 0.0
    blocks = fine[: rows * _BLOCK, : columns * _BLOCK].reshape(rows, _BLOCK, columns, _BLOCK)
    return float(np.quantile(blocks.std(axis=(1, 3)), _FLAT_SHARE))


def match_levels(parts: Sequence[SplicedPart], reader: SplicedPartReader) -> list[PartLevels]:
    """Return levels that give all parts the grain of the grainiest one, and one loudness.

    If one part has no sound, the video is silent: a silent part would be visible in the file.
    """
    own = np.minimum([reader.grain(part) for part in parts], MOST_GRAIN)
    # Old grain is smoothed by its codec: every part also gets fresh grain of the same level.
    target = 2 * max(_LEAST_GRAIN, float(own.max())) ** 2
    grains = np.sqrt(target - own**2).tolist()
    sounds = _match_loudness(parts, reader) if reader.form.sound == "kept" else [None] * len(parts)
    return [PartLevels(grain=g, sound=s) for g, s in zip(grains, sounds, strict=True)]


def _match_loudness(
    parts: Sequence[SplicedPart], reader: SplicedPartReader
) -> list[Samples | None]:
    sounds = []
    for part in parts:
        sound = reader.sound(part)
        if sound is None or _measure_loudness(sound) < _SILENT:
            return [None] * len(parts)
        sounds.append(sound)
    levels = [_measure_loudness(sound) for sound in sounds]
    target = float(np.median(levels))
    gains = np.clip([target / level for level in levels], 1 / _MOST_GAIN, _MOST_GAIN).tolist()
    return [
        np.clip(np.rint(sound * gain), -32_768, 32_767).astype(np.int16)
        for sound, gain in zip(sounds, gains, strict=True)
    ]


def _measure_loudness(sound: Samples) -> float:
    return float(np.sqrt(np.mean(np.square(sound, dtype=np.float64)))) if sound.size else 0.0


def encode_spliced_video(
    parts: Sequence[SplicedPart],
    levels: Sequence[PartLevels],
    reader: SplicedPartReader,
    *,
    seed: int,
) -> tuple[bytes, tuple[Trace, ...]]:
    """Encode the parts as one mp4 file with one quantiser and key frames at fixed distances.

    Return the file and its ground truth: each generated part and each injected trace.
    """
    form, rng = reader.form, np.random.default_rng(seed)
    grain = rng.standard_normal((form.height + _BLOCK, form.width + _BLOCK), np.float32)
    track = VideoTrackSettings(
        codec="libx264",
        width=form.width,
        height=form.height,
        rate=form.rate,
        time_base=1 / form.rate,
        options={"qp": str(form.crf), "preset": "veryfast"}
        | {"bf": "0", "g": "48", "sc_threshold": "0"},
    )
    sound = SoundTrackSettings(codec="aac", channels=1) if form.sound == "kept" else None
    traces: list[Trace] = []
    tick = 0
    with ClipWriter("mp4", track, sound=sound) as writer:
        for part, level in zip(parts, levels, strict=True):
            sources = []
            for at_s, rgb in reader.frames(part, range(part.n_frames)):
                writer.add_picture(_add_grain(rgb, grain, level.grain, rng), tick=tick)
                sources.append(convert_to_microseconds(at_s))
                tick += 1
            first = tick - part.n_frames
            writer.add_sound(_fit_sound(level.sound, first, tick, form.rate))
            traces += _build_truth(part, sources, first, form.rate)
        return writer.finish(), tuple(traces)


def _add_grain(rgb: Rgb, grain: Floats, level: float, rng: np.random.Generator) -> Rgb:
    if not level:
        return rgb
    top, left = rng.integers(_BLOCK, size=2)
    height, width, _ = rgb.shape
    fresh = grain[top : top + height, left : left + width] * np.float32(level)
    return np.clip(np.rint(rgb + fresh[..., None]), 0, 255).astype(np.uint8)


def _fit_sound(sound: Samples | None, first: int, end: int, rate: Fraction) -> Samples:
    n_samples = int(end / rate * SOUND_RATE_HZ) - int(first / rate * SOUND_RATE_HZ)
    fitted = np.zeros((n_samples, 1), np.int16)
    if sound is not None:
        fitted[: len(sound)] = sound[:n_samples]
    return fitted


def _build_truth(
    part: SplicedPart, sources: Sequence[int], first: int, rate: Fraction
) -> Iterator[Trace]:
    """Yield the ground truth of a part whose output frame `first + i` shows source time `sources[i]`."""
    instants = [convert_to_microseconds((first + i) / rate) for i in range(len(sources) + 1)]
    if part.generated:
        yield Trace(span=TimeSpan(instants[0], instants[-1]))
    for trace in part.traces:
        shown = [i for i, at in enumerate(sources) if trace.span.start_us <= at < trace.span.end_us]
        if not shown:
            continue
        marks = [mark.at_us for mark in trace.track]
        boxes = ((i, bisect_right(marks, sources[i]) - 1) for i in shown)
        track = tuple(
            BoxAt(instants[i], box)
            for i, mark in boxes
            if mark >= 0 and (box := part.mapping.map(trace.track[mark].box)) is not None
        )
        yield Trace(
            span=TimeSpan(instants[shown[0]], instants[shown[-1] + 1]),
            track=track,
            categories=trace.categories,
            explanation=trace.explanation,
        )


def _require_success(value: Value | Failure) -> Value:
    if isinstance(value, Failure):
        raise MediaError(value)
    return value
