"""The annotated copy of a clip: its pictures, its pace, its sound."""

import io
from dataclasses import replace
from fractions import Fraction

import av
import numpy as np
import pytest

from scenes.ball import read_index
from synthesise import ClipRecipe, synthesise
from unreel.core.box import Box
from unreel.core.errors import MediaError
from unreel.core.failure import Failure, FailureReason
from unreel.core.settings import EnvironmentSettings
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt
from unreel.media.access import open_media_reader
from unreel.media.annotated_copy import iter_annotated_copy
from unreel.media.encode import ClipWriter
from unreel.media.messages import TaskReplyPayload
from unreel.media.overlay import (
    NARROWEST,
    PALETTE,
    OverlayCommentary,
    OverlayTrace,
    ReviewerOverlayLane,
)
from unreel.media.reader import AnnotatedCopyReceiver
from unreel.media.sound import read_mono_sound

SECOND = 1_000_000
CLIP = ClipRecipe(n_frames=24, tone_hz=440, seed=3)
SAID = OverlayCommentary(
    lanes=(
        ReviewerOverlayLane(
            text="somebody: generated",
            traces=(
                OverlayTrace(
                    span=TimeSpan(SECOND // 2, SECOND),
                    track=(BoxAt(SECOND // 2, Box(0.25, 0.25, 0.75, 0.75)),),
                ),
            ),
        ),
    ),
    duration_us=SECOND,
    notes=("a warning",),
)


def copied(clip: bytes, said: OverlayCommentary = SAID) -> bytes:
    whole = io.BytesIO()
    for piece in iter_annotated_copy(io.BytesIO(clip), said):
        whole.seek(piece.header["at"])
        whole.write(piece.blobs[0])
    return whole.getvalue()


def shown(data: bytes) -> tuple[list[Fraction], list[np.ndarray]]:
    with av.open(io.BytesIO(data)) as clip:
        stream = clip.streams.video[0]
        frames = list(clip.decode(stream))
        instants = [frame.pts * stream.time_base for frame in frames]
    return instants, [frame.to_ndarray(format="rgb24") for frame in frames]


def test_every_frame_is_there_in_full_size_with_its_box_from_its_instant_on() -> None:
    instants, frames = shown(copied(synthesise(CLIP)))
    assert [float(at_s) for at_s in instants] == pytest.approx([i / 24 for i in range(24)])
    left = (NARROWEST - CLIP.width) // 2
    pictures = [frame[: CLIP.height, left : left + CLIP.width] for frame in frames]
    assert [read_index(picture) for picture in pictures[:12]] == list(range(12))
    red = [int((np.abs(p.astype(int) - PALETTE[0]).sum(-1) < 90).sum()) for p in pictures]
    assert red[11] < red[12] - 100


def test_the_sound_is_the_clips() -> None:
    heard = read_mono_sound(io.BytesIO(copied(synthesise(CLIP))))
    assert heard is not None
    assert float(heard.duration_s) == pytest.approx(1, abs=0.05)
    spectrum = np.abs(np.fft.rfft(heard.as_float()[4000:12000]))
    assert spectrum.argmax() * heard.rate_hz / 8000 == pytest.approx(440, abs=4)


def test_a_strange_sound_costs_the_sound_and_not_the_copy(monkeypatch) -> None:
    monkeypatch.setattr("unreel.media.sound.AUDIO_DECODERS", {})
    made = copied(synthesise(CLIP))
    with av.open(io.BytesIO(made)) as clip:
        assert not clip.streams.audio
    lower = len(shown(made)[1][0])
    assert lower > len(shown(copied(synthesise(replace(CLIP, tone_hz=None))))[1][0])  # it is told


@pytest.mark.parametrize("container", ["mp4", "mkv", "webm", "gif", "ts"])
def test_every_kind_of_file_is_copied(container) -> None:
    recipe = replace(CLIP, container=container, tone_hz=None, rate=Fraction(25), n_frames=10)
    instants, _ = shown(copied(synthesise(recipe)))
    assert [float(at_s) for at_s in instants] == pytest.approx(
        [i / 25 for i in range(10)], abs=2e-3
    )


def test_a_variable_pace_that_begins_late_is_kept_with_its_sound() -> None:
    gaps = [Fraction(n, 90_000) for n in np.cumsum([0, 3000, 3000, 9000, 1500, 30000, 3000])]
    recipe = replace(CLIP, n_frames=7, instants_s=tuple(Fraction(5) + gap for gap in gaps))
    made = copied(synthesise(recipe))
    instants, frames = shown(made)
    assert [float(at_s) for at_s in instants] == pytest.approx([float(gap) for gap in gaps])
    left = (NARROWEST - CLIP.width) // 2
    assert [read_index(f[: CLIP.height, left : left + CLIP.width]) for f in frames] == list(
        range(7)
    )


def test_a_turned_clip_stands_upright() -> None:
    recipe = replace(CLIP, rotation_deg=90, n_frames=4)
    _, frames = shown(copied(synthesise(recipe)))
    left = (NARROWEST - CLIP.width) // 2
    pictures = [frame[: CLIP.height, left : left + CLIP.width] for frame in frames]
    assert [read_index(picture) for picture in pictures] == list(range(4))


def test_pixels_that_are_not_square_are_shown_as_players_do(monkeypatch) -> None:
    add = ClipWriter._add_video

    def wide(self, track):
        stream = add(self, track)
        stream.codec_context.sample_aspect_ratio = Fraction(2)
        return stream

    with monkeypatch.context() as patched:
        patched.setattr(ClipWriter, "_add_video", wide)
        lying = synthesise(replace(CLIP, width=320, n_frames=3))
        turned = synthesise(replace(CLIP, width=320, n_frames=3, rotation_deg=90))
    made, upright = shown(copied(lying))[1], shown(copied(turned))[1]
    assert made[0].shape[1] == 640
    assert upright[0].shape[1] == NARROWEST
    assert np.abs(upright[0][250, 240].astype(int) - (27, 30, 38)).sum() > 20  # twice as high


def test_a_clip_without_end_is_refused(monkeypatch) -> None:
    monkeypatch.setattr("unreel.media.annotated_copy.MAX_FRAMES", 23)
    with pytest.raises(MediaError, match="24 frames"):
        copied(synthesise(CLIP))


@pytest.mark.parametrize("trusted", [True, False])
def test_a_confined_child_makes_the_same_copy_and_tells_how_far_it_is(tmp_path, trusted) -> None:
    clip = tmp_path / "clip.mp4"
    clip.write_bytes(synthesise(CLIP))
    told: list[int] = []
    made = io.BytesIO()
    with open_media_reader(EnvironmentSettings(), trusted=trusted) as reader:
        found = reader.annotate(clip, SAID, into=made, on_frames=told.append)
    assert not isinstance(found, Failure), found
    assert (found.n_frames, found.size_bytes) == (24, len(made.getvalue()))
    assert told[-1] == 24
    assert len(told) > 2
    assert made.getvalue() == copied(clip.read_bytes())


START = b"\0\0\0\x18ftypisom" + bytes(12)


def test_a_copy_that_never_ends_is_cut_off(monkeypatch) -> None:
    monkeypatch.setattr("unreel.media.reader._MIN_BYTES", 100)
    monkeypatch.setattr("unreel.media.reader._BYTES_PER_S", 100)
    into = io.BytesIO()
    taker = AnnotatedCopyReceiver(into, duration_us=SECOND, on_frames=lambda _: None)
    taker.add(TaskReplyPayload({"at": 0, "n_frames": 1}, (START,)))
    with pytest.raises(MediaError) as caught:
        taker.add(TaskReplyPayload({"at": 24, "n_frames": 1}, (bytes(200),)))
    assert caught.value.failure.reason is FailureReason.TOO_LARGE
    assert len(into.getvalue()) == 24
