"""Encoding of a spliced video: one coarse codec generation of all parts, then grain, and one loudness."""

import io
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby, islice
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
from unreel.media.decode import Rgb, decode_frames
from unreel.media.encode import SOUND_RATE_HZ, ClipWriter, SoundTrackSettings, VideoTrackSettings
from unreel.media.messages import MAX_PIXELS, MOST_INSTANTS
from unreel.media.normalise import NormalisedClipFormat, fit_picture_inside
from unreel.media.reader import MediaReader
from unreel.media.render import crop_picture
from unreel.media.sound import NoSound
from unreel.media.timeline import read_frame_timeline

Value = TypeVar("Value")
Floats = NDArray[np.float32]
Samples = NDArray[np.int16]
_CHUNK_BYTES: Final = 64 << 20
"""Maximum size of the frames of one request to the decoder."""
_COARSE_QUANTISER: Final = 36
"""Quantiser of the common codec generation, which removes grain and the coding errors of finer sources."""
_GRAIN: Final = 2.0
"""Standard deviation of the added grain, in grey levels."""
_GRAIN_SHIFT: Final = 16
_MOST_GAIN: Final = 10.0
_SILENT: Final = 1.0


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
        n_fitting = max(1, _CHUNK_BYTES // (3 * video.width * video.height))
        n_chunk = min(n_fitting, MOST_INSTANTS)
        for first in range(0, len(indices), n_chunk):
            moments = [
                int((part.start_s + (index + Fraction(1, 2)) / self.form.rate) * MICROSECONDS)
                for index in indices[first : first + n_chunk]
            ]
            frames = _require_success(self.reader.frames_at(self.files[part.clip], moments)).frames
            starts = [convert_to_microseconds(frame.at_s) for frame in frames]
            sources = [max(0, bisect_right(starts, moment) - 1) for moment in moments]
            for source, repeats in groupby(sources):
                rgb = crop_picture(frames[source].rgb(), part.crop)
                fitted = fit_picture_inside(rgb, width=self.form.width, height=self.form.height)
                for _ in repeats:
                    yield frames[source].at_s, fitted

    def facts(self, part: SplicedPart) -> ClipFacts:
        """Return the facts of the part's clip.

        Raises:
            MediaError: The clip cannot be read.
        """
        return _require_success(self.reader.probe(self.files[part.clip]))

    def sound(self, part: SplicedPart) -> Samples | None:
        """Return the sound of the part; `None` if the clip has none."""
        sound = self.reader.sound(self.files[part.clip])
        if isinstance(sound, NoSound):
            return None
        end_s = part.start_s + part.n_frames / self.form.rate
        return align_clip_sound(_require_success(sound), end_s=end_s)[
            int(part.start_s * SOUND_RATE_HZ) :
        ]


def _match_loudness(
    parts: Sequence[SplicedPart], reader: SplicedPartReader
) -> list[Samples | None]:
    """Return the sounds of the parts in one loudness, `None` for silence.

    If one part has no sound, the video is silent: a silent part would be visible in the file.
    """
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
    parts: Sequence[SplicedPart], reader: SplicedPartReader, *, seed: int
) -> tuple[bytes, tuple[Trace, ...]]:
    """Encode the parts as one mp4 file with one quantiser and key frames at fixed distances.

    All parts first get one coarse codec generation, which hides the earlier ones, and then the same grain.
    """
    fmt, rng = reader.form, np.random.default_rng(seed)
    pictures, traces = _encode_coarsely(parts, reader)
    size = (fmt.height + _GRAIN_SHIFT, fmt.width + _GRAIN_SHIFT)
    grain = np.float32(_GRAIN) * rng.standard_normal(size, np.float32)
    sound = SoundTrackSettings(codec="aac", channels=1) if fmt.sound == "kept" else None
    sounds = _match_loudness(parts, reader) if sound else [None] * len(parts)
    tick = 0
    with ClipWriter("mp4", _build_track(fmt, fmt.crf), sound=sound) as writer:
        for part, samples in zip(parts, sounds, strict=True):
            first = tick
            for rgb in islice(pictures, part.n_frames):
                writer.add_picture(_add_grain(rgb, grain, rng), tick=tick)
                tick += 1
            writer.add_sound(_fit_sound(samples, first, tick, fmt.rate))
        return writer.finish(), traces


def _encode_coarsely(
    parts: Sequence[SplicedPart], reader: SplicedPartReader
) -> tuple[Iterator[Rgb], tuple[Trace, ...]]:
    """Return the pictures after one coarse codec generation, and the ground truth."""
    fmt, traces, tick = reader.form, list[Trace](), 0
    with ClipWriter("mp4", _build_track(fmt, _COARSE_QUANTISER)) as writer:
        for part in parts:
            sources = []
            for at_s, rgb in reader.frames(part, range(part.n_frames)):
                writer.add_picture(rgb, tick=tick)
                sources.append(convert_to_microseconds(at_s))
                tick += 1
            traces += _build_truth(part, sources, tick - part.n_frames, fmt.rate)
        file = io.BytesIO(writer.finish())
    timeline = read_frame_timeline(file, max_pixels=MAX_PIXELS)
    frames = decode_frames(file, timeline, indices=range(tick), max_pixels=MAX_PIXELS)
    return (frame.rgb for frame in frames), tuple(traces)


def _build_track(fmt: NormalisedClipFormat, quantiser: int) -> VideoTrackSettings:
    return VideoTrackSettings(
        codec="libx264",
        width=fmt.width,
        height=fmt.height,
        rate=fmt.rate,
        time_base=1 / fmt.rate,
        options={"qp": str(quantiser), "preset": "veryfast"}
        | {"bf": "0", "g": "48", "sc_threshold": "0"},
    )


def _add_grain(rgb: Rgb, grain: Floats, rng: np.random.Generator) -> Rgb:
    top, left = rng.integers(_GRAIN_SHIFT, size=2)
    height, width, _ = rgb.shape
    fresh = grain[top : top + height, left : left + width]
    grainy: Rgb = np.clip(np.rint(rgb + fresh[..., None]), 0, 255).astype(np.uint8)
    return grainy


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
        span = trace.span
        seen = [i for i, at in enumerate(sources) if span.start_us <= at < span.end_us]
        if not seen:
            continue
        times = [mark.at_us for mark in trace.track]
        boxes = ((i, bisect_right(times, sources[i]) - 1) for i in seen)
        track = tuple(
            BoxAt(instants[i], box)
            for i, mark in boxes
            if mark >= 0 and (box := part.mapping.map(trace.track[mark].box)) is not None
        )
        yield Trace(
            span=TimeSpan(instants[seen[0]], instants[seen[-1] + 1]),
            track=track,
            categories=trace.categories,
            explanation=trace.explanation,
        )


def _require_success(value: Value | Failure) -> Value:
    if isinstance(value, Failure):
        raise MediaError(value)
    return value
