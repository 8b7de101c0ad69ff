"""Pieces as files: exactly the frames, instants, pixels and sound of the cut, the same bytes each time."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from scenes.ball import read_index
from synthesise import ClipRecipe, synthesise
from unreel.core.failure import Failure, FailureReason
from unreel.core.settings import read_environment_settings
from unreel.media.access import open_media_reader
from unreel.media.render import CroppedFrameRange, NormalisedClipFormat, PixelCrop


@pytest.fixture(scope="module")
def reader():
    with open_media_reader(read_environment_settings(), trusted=True) as opened:
        yield opened


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """Two seconds with sound."""
    path = tmp_path / "clip.mp4"
    path.write_bytes(synthesise(ClipRecipe(n_frames=48, tone_hz=440, seed=4)))
    return path


def made(
    reader, clip: Path, frame_range: CroppedFrameRange, form: NormalisedClipFormat | None = None
) -> Path:
    data = reader.render(clip, frame_range, form=form)
    assert isinstance(data, bytes), data
    path = clip.with_name("made.mp4")
    path.write_bytes(data)
    return path


def indices(reader, path: Path) -> list[int]:
    frames = reader.frames(path, sampling="fps-1000", encoding="rgb24").frames
    return [read_index(frame.rgb()) for frame in frames]


def test_a_piece_holds_exactly_the_frames_of_its_cut(reader, clip) -> None:
    path = made(reader, clip, CroppedFrameRange(first_frame=13, end_frame=31))
    assert indices(reader, path) == list(range(13, 31))
    facts = reader.probe(path)
    assert facts.video.average_rate == 24
    assert facts.video.first_at_s == 0


def test_frames_keep_their_instants_where_the_rate_varies(reader, tmp_path) -> None:
    instants = tuple(Fraction(n * n, 400) for n in range(30))
    path = tmp_path / "clip.mp4"
    path.write_bytes(synthesise(ClipRecipe(n_frames=30, instants_s=instants, b_frames=0)))
    piece = made(reader, path, CroppedFrameRange(first_frame=10, end_frame=20))
    frames = reader.frames(piece, sampling="fps-1000").frames
    wanted = [instants[n] - instants[10] for n in range(10, 20)]
    apart = [abs(f.at_s - w) for f, w in zip(frames, wanted, strict=True)]
    assert max(apart) < Fraction(1, 10_000)
    assert len(frames) == 10


def test_a_length_ends_the_piece_before_the_first_frame_behind_it(reader, clip) -> None:
    path = made(reader, clip, CroppedFrameRange(first_frame=4, length_s=Fraction(1, 2)))
    assert indices(reader, path) == list(range(4, 16))
    longer = made(reader, clip, CroppedFrameRange(first_frame=40, length_s=Fraction(9)))
    assert indices(reader, longer) == list(range(40, 48))


def test_in_a_form_a_piece_lasts_exactly_its_length_in_frames_of_the_form(reader, clip) -> None:
    form = NormalisedClipFormat(width=96, height=64, rate=Fraction(10))
    path = made(reader, clip, CroppedFrameRange(first_frame=4, length_s=Fraction(11, 10)), form)
    facts = reader.probe(path)
    assert (facts.video.n_frames, facts.video.average_rate) == (11, 10)
    assert not facts.audio


def test_a_crop_keeps_its_pixels(reader, clip) -> None:
    crop = PixelCrop(left=20, top=31, width=101, height=60)
    path = made(reader, clip, CroppedFrameRange(end_frame=5, crop=crop))
    facts = reader.probe(path)
    assert (facts.video.width, facts.video.height) == (100, 60)
    (whole,) = reader.frames(clip, sampling="uniform-1", encoding="rgb24").frames
    first = reader.frames(clip, sampling="fps-1/9", encoding="rgb24").frames[0].rgb()
    cropped = reader.frames(path, sampling="fps-1/9", encoding="rgb24").frames[0].rgb()
    apart = np.abs(first[31:91, 20:120].astype(int) - cropped.astype(int))
    assert apart.mean() < 3
    assert whole.width == 192


def test_sound_is_cut_with_the_picture(reader, clip) -> None:
    path = made(reader, clip, CroppedFrameRange(first_frame=12, end_frame=36))
    (audio,) = reader.probe(path).audio
    assert abs(audio.duration_s - 1) < Fraction(1, 20)
    heard = reader.sound(path)
    assert np.abs(heard.samples[2000:12_000]).max() > 1000


def test_the_same_piece_is_the_same_bytes_in_a_confined_child_too(reader, clip) -> None:
    cut = CroppedFrameRange(
        first_frame=3, end_frame=20, crop=PixelCrop(left=2, top=2, width=64, height=64)
    )
    here = reader.render(clip, cut)
    assert here == reader.render(clip, cut)
    with open_media_reader(read_environment_settings(), trusted=False) as confined:
        assert confined.render(clip, cut) == here


@pytest.mark.parametrize(
    "cut",
    [
        CroppedFrameRange(first_frame=48),
        CroppedFrameRange(first_frame=3, end_frame=49),
        CroppedFrameRange(first_frame=3, end_frame=3),
        CroppedFrameRange(crop=PixelCrop(left=100, top=0, width=100, height=20)),
    ],
)
def test_what_the_clip_does_not_have_is_a_failure(reader, clip, cut) -> None:
    found = reader.render(clip, cut)
    assert isinstance(found, Failure)
    assert found.reason is FailureReason.UNDECODABLE
