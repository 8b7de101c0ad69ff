"""Small honest clips, from which the tests craft dishonest ones."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import av
import numpy as np
from av.audio.stream import AudioStream
from av.video.stream import VideoStream


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a clip is made."""

    container: str = "mp4"
    codec: str | None = "libx264"
    sound: str | None = None
    pixel_format: str = "yuv420p"
    width: int = 64
    height: int = 48
    frames: int = 10
    pts: Sequence[int] | None = None
    """Instants in 1/25 s; 0, 1, 2, ... by default."""
    plain: bool = False
    """All grey: quick to make at any size."""
    container_options: tuple[tuple[str, str], ...] = ()
    codec_options: tuple[tuple[str, str], ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()


def make(recipe: Recipe) -> bytes:
    """The file that `recipe` describes."""
    target = io.BytesIO()
    options = dict(recipe.container_options)
    with av.open(target, "w", format=recipe.container, options=options) as container:
        container.metadata.update(dict(recipe.metadata))
        picture = _picture(container, recipe) if recipe.codec else None
        sound = container.add_stream(recipe.sound, rate=48_000) if recipe.sound else None
        container.start_encoding()  # Writes a header even where no frame follows.
        if picture is not None:
            _film(container, picture, recipe)
        if isinstance(sound, AudioStream):
            _record(container, sound, recipe)
    return target.getvalue()


def _picture(container: av.container.OutputContainer, recipe: Recipe) -> VideoStream:
    stream = container.add_stream(recipe.codec, rate=25, options=dict(recipe.codec_options))
    assert isinstance(stream, VideoStream)
    stream.width, stream.height = recipe.width, recipe.height
    stream.pix_fmt = recipe.pixel_format
    stream.codec_context.time_base = Fraction(1, 25)
    return stream


def _film(container: av.container.OutputContainer, stream: VideoStream, recipe: Recipe) -> None:
    for index in range(recipe.frames):
        frame = _plain_frame(recipe) if recipe.plain else _frame(recipe, index)
        frame.pts = index if recipe.pts is None else recipe.pts[index]
        frame.time_base = Fraction(1, 25)
        container.mux(stream.encode(frame))
    container.mux(stream.encode(None))


def _frame(recipe: Recipe, index: int) -> av.VideoFrame:
    down, across = np.mgrid[: recipe.height, : recipe.width]
    grey = ((down * 3 + across * 2 + index * 11) % 256).astype(np.uint8)
    return av.VideoFrame.from_ndarray(np.dstack([grey, grey[::-1], 255 - grey]), format="rgb24")


def _plain_frame(recipe: Recipe) -> av.VideoFrame:
    frame = av.VideoFrame(recipe.width, recipe.height, recipe.pixel_format)
    for plane in frame.planes:
        plane.update(b"\x80" * plane.buffer_size)
    return frame


def _record(container: av.container.OutputContainer, stream: AudioStream, recipe: Recipe) -> None:
    wave = np.sin(np.arange(48_000 * recipe.frames // 25) / 20).astype(np.float32)
    frame = av.AudioFrame.from_ndarray(wave[np.newaxis], format="fltp", layout="mono")
    frame.sample_rate = 48_000
    frame.pts = 0
    container.mux(stream.encode(frame))
    container.mux(stream.encode(None))


MP4 = Recipe(sound="aac")
MKV = Recipe(container="matroska", sound="flac")
WEBM = Recipe(container="webm", codec="libvpx-vp9", sound="libopus")
GIF = Recipe(container="gif", codec="gif", pixel_format="rgb8")
TS = Recipe(container="mpegts", codec="mpeg2video", sound="mp2", frames=25)
AVI = Recipe(container="avi", codec="mpeg4", sound="libmp3lame")
