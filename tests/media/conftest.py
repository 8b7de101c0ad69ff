"""Clips for the tests of this folder."""

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import av
import pytest

from scenes.ball import SampleScene
from synthesise import ClipRecipe, synthesise
from unreel.core.errors import MediaError
from unreel.core.failure import Failure
from unreel.media.decode import Rgb

Make = Callable[..., io.BytesIO]


@dataclass(frozen=True)
class SharedClip:
    """One row of the shared manifest."""

    id: str
    path: Path
    width: int
    height: int
    n_frames: int
    has_audio: bool


@pytest.fixture(scope="session")
def shared_clips(shared: Path) -> list[SharedClip]:
    with (shared / "clips" / "manifest.csv").open(newline="", encoding="utf-8") as file:
        return [
            SharedClip(
                id=row["clip_id"],
                path=shared / "clips" / row["file"],
                width=int(row["width"]),
                height=int(row["height"]),
                n_frames=int(row["frames"]),
                has_audio=row["has_audio"] == "yes",
            )
            for row in csv.DictReader(file)
        ]


@cache
def _picture(index: int) -> Rgb:
    return SampleScene(192, 128, 0).draw(index)


@cache
def _synthesised(recipe: ClipRecipe) -> bytes:
    return synthesise(recipe)


@pytest.fixture(scope="session")
def make() -> Make:
    """A synthetic clip as an open file, made once for each recipe."""

    def build(**recipe: Any) -> io.BytesIO:
        return io.BytesIO(_synthesised(ClipRecipe(**recipe)))

    return build


@pytest.fixture(scope="session")
def encode() -> Make:
    """The same scene through any muxer and encoder that FFmpeg has."""

    @cache
    def build(muxer: str, codec: str, **options: str) -> bytes:
        av.logging.set_level(None)
        out = io.BytesIO()
        with av.open(out, "w", format=muxer) as output:
            pixel_format = options.pop("pix_fmt", "yuv420p")
            x = options.pop("x264", None)
            stream = output.add_stream(codec, rate=25)
            stream.width, stream.height, stream.pix_fmt = 192, 128, pixel_format
            stream.options = options | ({"x264-params": x} if x else {})
            for index in range(60):
                frame = av.VideoFrame.from_ndarray(_picture(index), format="rgb24")
                frame = frame.reformat(format=pixel_format)
                frame.pts, frame.time_base = index, Fraction(1, 25)
                output.mux(stream.encode(frame))
            output.mux(stream.encode(None))
        return out.getvalue()

    def fresh(muxer: str, codec: str, **options: str) -> io.BytesIO:
        return io.BytesIO(build(muxer, codec, **options))

    return fresh


@pytest.fixture(scope="session")
def failure_of() -> Callable[..., Failure]:
    """What a call that must fail leaves behind."""

    def call(function: Callable[..., Any], *args: Any, **keywords: Any) -> Failure:
        with pytest.raises(MediaError) as caught:
            function(*args, **keywords)
        return caught.value.failure

    return call
