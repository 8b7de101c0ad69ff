"""Copy of a clip with annotations drawn on it, in the clip's size and speed and with its sound.

Memory does not grow with the clip: pictures and sound are read in parallel, and output is streamed.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unreel.core.errors import MediaError
from unreel.core.failure import FailureReason
from unreel.core.span import convert_to_microseconds
from unreel.media.container import open_clip
from unreel.media.decode import Rgb, decode_frames
from unreel.media.encode import SOUND_RATE_HZ, ClipWriter, VideoTrackSettings
from unreel.media.messages import MAX_PIXELS, Parts, TaskReplyPayload
from unreel.media.overlay import OverlayCommentary, OverlayPainter
from unreel.media.probe import get_clockwise_rotation
from unreel.media.render import CHANNELS, MAX_FRAMES
from unreel.media.sound import iter_sound_blocks
from unreel.media.timeline import FrameTimeline, read_frame_timeline

_PIECE_BYTES = 1 << 20
_PIECE_FRAMES = 12
_MAX_ASPECT = 8
_MUTE = "The sound of the clip cannot be read: this copy has none."
OPTIONS = {"crf": "20", "preset": "superfast", "bf": "0", "g": "48"}
"""Encoder options of the copy; `benchmarks/annotated_copy.py` compares the presets."""


def iter_annotated_copy(
    file: BinaryIO, commentary: OverlayCommentary, *, max_pixels: int = MAX_PIXELS
) -> Parts:
    """Yield a copy of the clip with `commentary` drawn on it, as chunks of an mp4 file.

    A chunk has its offset `at` in the file and may overwrite earlier bytes. The generator returns the
    size and the number of frames of the copy.
    """
    timeline = read_frame_timeline(file, max_pixels=max_pixels)
    if timeline.n_frames > MAX_FRAMES:
        raise MediaError(
            FailureReason.TOO_LONG,
            f"the clip has {timeline.n_frames} frames, more than {MAX_FRAMES}",
        )
    aspect = _read_pixel_aspect(file, max_pixels=max_pixels)
    sound = _SoundReader(file, from_s=timeline.first_at_s, max_pixels=max_pixels)
    pictures = _iter_visible_frames(
        cast("BinaryIO", _SharedFileReader(file)), timeline, aspect=aspect, max_pixels=max_pixels
    )
    first = next(pictures)
    height, width, _ = first[1].shape
    if sound.is_lost:
        commentary = replace(commentary, notes=(*commentary.notes, _MUTE))
    annotator = OverlayPainter(commentary, width=width, height=height)
    outlet = _MuxerBuffer()
    n_channels = CHANNELS if sound.is_there else 0
    rate = timeline.n_frames / timeline.duration_s
    video = VideoTrackSettings(
        codec="libx264",
        width=annotator.size[0],
        height=annotator.size[1],
        rate=rate.limit_denominator(1 << 16),
        time_base=timeline.time_base,
        options=OPTIONS,
    )
    with ClipWriter("mp4", video, n_channels=n_channels, sink=outlet) as writer:
        for n_frames, (index, rgb) in enumerate(chain([first], pictures), start=1):
            picture = annotator.draw(
                _resize_frame(rgb, width, height), convert_to_microseconds(timeline.at_s(index))
            )
            writer.add_picture(picture, tick=timeline.ticks[index] - timeline.ticks[0])
            after = index + 1
            is_last = after == timeline.n_frames
            for samples in sound.until(timeline.duration_s if is_last else timeline.at_s(after)):
                writer.add_sound(samples)
            if n_frames % _PIECE_FRAMES == 0 or outlet.n_bytes >= _PIECE_BYTES:
                yield from outlet.take(n_frames)
        writer.finish()
    yield from outlet.take(n_frames)
    return TaskReplyPayload({"size_bytes": outlet.size, "n_frames": n_frames})


class _MuxerBuffer:
    def __init__(self) -> None:
        self._at = self.size = self.n_bytes = 0
        self._held: list[tuple[int, bytearray]] = []

    def write(self, data: bytes, /) -> int:
        if self._held and self._at == self._held[-1][0] + len(self._held[-1][1]):
            self._held[-1][1].extend(data)
        else:
            self._held.append((self._at, bytearray(data)))
        self.n_bytes += len(data)
        self._at += len(data)
        self.size = max(self.size, self._at)
        return len(data)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self._at = (0, self._at, self.size)[whence] + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def take(self, n_frames: int) -> Iterator[TaskReplyPayload]:
        """Yield all buffered bytes as chunks, in the order of writing, and empty the buffer."""
        chunks, self._held, self.n_bytes = self._held, [], 0
        for at, data in chunks:
            yield TaskReplyPayload({"at": at, "n_frames": n_frames}, (bytes(data),))


class _SharedFileReader:
    """File reader with its own position, so that several readers can share one open file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._at = file, 0

    def read(self, size: int = -1, /) -> bytes:
        self._file.seek(self._at)
        data = self._file.read(size)
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self._file.seek(self._at)
        self._at = self._file.seek(offset, whence)
        return self._at

    def tell(self) -> int:
        return self._at


class _SoundReader:
    """Reader of a clip's stereo sound from the time `from_s`; it stops at the first damaged part."""

    def __init__(self, file: BinaryIO, *, from_s: Fraction, max_pixels: int) -> None:
        self._parts = _iter_stereo_samples(
            cast("BinaryIO", _SharedFileReader(file)), from_s=from_s, max_pixels=max_pixels
        )
        self._left = np.empty((0, CHANNELS), np.int16)
        self._done = 0
        self.is_lost = False
        self.is_there = self._refill()

    def until(self, end_s: Fraction) -> Iterator[NDArray[np.int16]]:
        """Yield the sound samples between the end of the last call and the time `end_s`, in blocks."""
        end = int(end_s * SOUND_RATE_HZ)
        while self._done < end and (len(self._left) or self._refill()):
            piece, self._left = np.split(self._left, [end - self._done])
            self._done += len(piece)
            yield piece

    def _refill(self) -> bool:
        try:
            self._left = next(self._parts, self._left[:0])
        except MediaError:  # damaged or unsupported sound does not make the copy fail
            self._parts, self.is_lost = iter(()), True
        return bool(len(self._left))


def _iter_stereo_samples(
    file: BinaryIO, *, from_s: Fraction, max_pixels: int
) -> Iterator[NDArray[np.int16]]:
    """Yield blocks of a clip's stereo samples; silence comes first if its sound begins after `from_s`."""
    late: int | None = None
    with open_clip(file, max_pixels=max_pixels) as clip:
        for block, start_s in iter_sound_blocks(clip, rate_hz=SOUND_RATE_HZ, layout="stereo"):
            if late is None:
                late = round((start_s - from_s) * SOUND_RATE_HZ)
                while late > 0:
                    silence = min(late, SOUND_RATE_HZ)
                    yield np.zeros((silence, CHANNELS), np.int16)
                    late -= silence
            early = min(-late, len(block))
            late += early
            if early < len(block):
                yield block[early:]


def _iter_visible_frames(
    file: BinaryIO, timeline: FrameTimeline, *, aspect: Fraction, max_pixels: int
) -> Iterator[tuple[int, Rgb]]:
    """Yield each visible frame with its index; only the last of several frames with the same time."""
    last = {tick: index for index, tick in enumerate(timeline.ticks)}
    frames = decode_frames(file, timeline, indices=list(last.values()), max_pixels=max_pixels)
    for frame in frames:
        height, width, _ = frame.rgb.shape
        wide = max(width, round(width * aspect))
        high = max(height, round(height / aspect))
        fits = wide * high <= max_pixels
        yield frame.index, _resize_frame(frame.rgb, wide, high) if fits else frame.rgb


def _read_pixel_aspect(file: BinaryIO, *, max_pixels: int) -> Fraction:
    """Return the pixel aspect ratio after rotation; 1 if it is missing or out of range."""
    with open_clip(file, max_pixels=max_pixels) as clip:
        ratio = clip.stream.sample_aspect_ratio
        aspect = Fraction(ratio) if ratio else Fraction(1)
        if not Fraction(1, _MAX_ASPECT) <= aspect <= _MAX_ASPECT:
            return Fraction(1)
        for frame in clip.container.decode(clip.stream):
            return 1 / aspect if get_clockwise_rotation(frame) % 180 else aspect
    return aspect


def _resize_frame(rgb: Rgb, width: int, height: int) -> Rgb:
    if rgb.shape[:2] == (height, width):
        return rgb
    picture = Image.fromarray(rgb).resize((width, height), Image.Resampling.BICUBIC)
    return np.asarray(picture)
