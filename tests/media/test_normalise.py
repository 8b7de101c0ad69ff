"""One form for every clip."""

import io
from fractions import Fraction

import av
import numpy as np
import pytest

from scenes.ball import read_index
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import FailureReason
from unreel.media.decode import decode_frames
from unreel.media.messages import MAX_PIXELS
from unreel.media.probe import probe_clip
from unreel.media.render import (
    NormalisedClipFormat,
    fit_picture_inside,
    normalise_clip,
    schedule_pictures,
)
from unreel.media.sound import ClipSound, read_mono_sound
from unreel.media.timeline import FrameTimeline, read_frame_timeline

FORM = NormalisedClipFormat(width=192, height=128, rate=Fraction(12), sound="kept")
MUTE = NormalisedClipFormat(width=192, height=128, rate=Fraction(12))
SECONDS = 2
INPUTS = (
    {"tone_hz": 440},
    {"container": "gif", "rate": Fraction(20), "n_frames": 40},
    {"container": "webm", "width": 128, "height": 192, "seed": 5},
    {"rotation_deg": 90, "rate": Fraction(30), "n_frames": 60},
    {"container": "ts", "tone_hz": 300},
    {
        "container": "mkv",
        "n_frames": 20,
        "instants_s": tuple(Fraction(i * 10 - i % 3, 100) for i in range(20)),
    },
)


def marks(data: bytes) -> list[object]:
    """All that the container says, but for the pictures and the sound themselves."""
    with av.open(io.BytesIO(data)) as container:
        streams = [
            (
                stream.type,
                stream.codec_context.name,
                stream.codec_context.extradata,
                str(stream.time_base),
                stream.start_time,
                stream.profile,
                stream.metadata,
            )
            for stream in container.streams
        ]
        return [container.format.name, container.metadata, streams]


@pytest.mark.parametrize("form", [FORM, MUTE], ids=["kept", "dropped"])
def test_very_different_clips_end_in_the_same_form(make, form) -> None:
    results = [normalise_clip(make(**recipe), form) for recipe in INPUTS]
    assert all(marks(data) == marks(results[0]) for data in results)
    for data in results:
        facts = probe_clip(io.BytesIO(data))
        video = facts.video
        assert (facts.container, video.codec, video.pixel_format) == ("mp4", "h264", "yuv420p")
        assert (video.width, video.height, video.rotation_deg) == (192, 128, 0)
        assert (video.average_rate, video.variable_rate, video.first_at_s) == (12, False, 0)
        assert abs(video.duration_s - SECONDS) < Fraction(1, 8)
        sound = [(stream.codec, stream.sample_rate_hz, stream.channels) for stream in facts.audio]
        assert sound == ([("aac", 48_000, 2)] if form is FORM else [])


def test_no_tag_and_no_signature_is_left(make) -> None:
    data = normalise_clip(make(tone_hz=440), FORM)
    assert not any(name in data for name in (b"x264", b"Lav", b"\xa9too"))
    assert data.endswith(b"\x00\x00\x00\x08ilst")  # the list of tags, empty
    with av.open(io.BytesIO(data)) as container:
        kinds = {
            byte & 0x1F for packet in container.demux(video=0) for byte in nal_heads(bytes(packet))
        }
    assert kinds == {1, 5}  # pictures only: no message rides along


def nal_heads(packet: bytes) -> list[int]:
    heads, place = [], 0
    while place < len(packet):
        heads.append(packet[place + 4])
        place += 4 + int.from_bytes(packet[place : place + 4], "big")
    return heads


@pytest.mark.parametrize("recipe", INPUTS[:4], ids=str)
def test_the_same_clip_gives_the_same_bytes(make, recipe) -> None:
    assert normalise_clip(make(**recipe), FORM) == normalise_clip(make(**recipe), FORM)


@pytest.mark.parametrize("recipe", [INPUTS[0], INPUTS[1], INPUTS[3]], ids=str)
def test_each_instant_shows_what_the_clip_showed_there(make, recipe) -> None:
    rate = recipe.get("rate", Fraction(24))
    data = io.BytesIO(normalise_clip(make(**recipe), MUTE))
    timeline = read_frame_timeline(data, max_pixels=MAX_PIXELS)
    frames = decode_frames(data, timeline, indices=range(24), max_pixels=MAX_PIXELS)
    seen = [read_index(frame.rgb) for frame in frames]
    assert seen == [int(tick * rate / 12) for tick in range(24)]


def test_a_clip_that_claims_to_last_for_ever_is_refused(failure_of) -> None:
    endless = FrameTimeline(
        time_base=Fraction(1),
        ticks=(0,),
        last_ticks=1 << 62,
        keys=(0,),
        declared_frames=1,
        declared_rate=Fraction(1),
        declared_s=Fraction(1),
    )
    failure = failure_of(
        schedule_pictures, endless, range(1), endless.duration_s, Fraction(1), rate=Fraction(24)
    )
    assert failure.reason is FailureReason.TOO_LONG


def test_the_sound_is_kept_in_time(make) -> None:
    sound = read_mono_sound(io.BytesIO(normalise_clip(make(tone_hz=440), FORM)))
    assert isinstance(sound, ClipSound)
    middle = sound.as_float()[8_000:24_000]
    assert np.argmax(np.abs(np.fft.rfft(middle))) == 440


def test_a_mute_clip_gets_a_silent_track(make) -> None:
    sound = read_mono_sound(io.BytesIO(normalise_clip(make(), FORM)))
    assert isinstance(sound, ClipSound)
    assert np.abs(sound.samples).max() <= 1


def test_the_picture_is_centred_on_black() -> None:
    white = np.full((100, 100, 3), 255, np.uint8)
    wide = fit_picture_inside(white, width=192, height=96)
    assert (wide[:, 48:144] == 255).all()
    assert not wide[:, :48].any()
    assert not wide[:, 144:].any()
    tall = fit_picture_inside(white, width=50, height=80)
    assert (tall[15:65] == 255).all()
    assert not tall[:15].any()


@pytest.mark.parametrize(
    "wrong", [{"width": 641}, {"height": 0}, {"width": 9000}, {"rate": Fraction(0)}, {"crf": 60}]
)
def test_a_form_that_cannot_be_encoded_is_refused(wrong) -> None:
    with pytest.raises(InvalidSettingError):
        NormalisedClipFormat(**wrong)
