"""Facts of clips."""

from fractions import Fraction

import pytest

from unreel.media.probe import probe_clip

NTSC = Fraction(30000, 1001)
GROWING_GAPS = tuple(Fraction(i * i + 3 * i, 100) for i in range(20))


@pytest.mark.parametrize("container", ["mp4", "mkv", "webm", "ts"])
@pytest.mark.parametrize("rate", [NTSC, Fraction(24000, 1001), Fraction(25), Fraction(60)])
def test_a_rate_stays_the_fraction_that_it_is(make, container, rate) -> None:
    facts = probe_clip(make(container=container, rate=rate, n_frames=30)).video
    assert facts.average_rate == rate
    assert not facts.variable_rate
    assert facts.n_frames == 30


@pytest.mark.parametrize("container", ["mp4", "mkv", "webm", "gif", "ts"])
def test_gaps_that_differ_make_a_variable_rate(make, container) -> None:
    facts = probe_clip(make(container=container, n_frames=20, instants_s=GROWING_GAPS)).video
    assert facts.variable_rate
    assert facts.average_rate == facts.n_frames / facts.duration_s


def test_the_length_runs_from_the_first_start_to_the_last_end(make) -> None:
    facts = probe_clip(make(rate=NTSC)).video
    assert facts.first_at_s == 0
    assert facts.duration_s == 48 / NTSC


def test_a_first_frame_that_comes_late_is_told(make) -> None:
    instants = tuple(Fraction(i + 25, 25) for i in range(10))
    facts = probe_clip(
        make(container="mkv", n_frames=10, instants_s=instants, rate=Fraction(25))
    ).video
    assert facts.first_at_s == 1


@pytest.mark.parametrize("container", ["mp4", "mkv"])
@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_the_size_is_the_one_that_is_shown(make, container, turn) -> None:
    facts = probe_clip(make(container=container, rotation_deg=turn, n_frames=4)).video
    assert (facts.width, facts.height, facts.rotation_deg) == (192, 128, turn)


@pytest.mark.parametrize(
    ("container", "codec"), [("mp4", "aac"), ("mkv", "aac"), ("ts", "aac"), ("webm", "opus")]
)
def test_sound_is_described(make, container, codec) -> None:
    (sound,) = probe_clip(make(container=container, tone_hz=440)).audio
    assert (sound.codec, sound.sample_rate_hz, sound.channels) == (codec, 48_000, 1)
    assert abs(sound.duration_s - 2) < Fraction(1, 10)


@pytest.mark.parametrize(
    ("container", "named", "codec"),
    [
        ("mp4", "mp4", "h264"),
        ("webm", "matroska", "vp9"),
        ("gif", "gif", "gif"),
        ("ts", "mpegts", "h264"),
    ],
)
def test_container_codec_and_size_are_named(make, container, named, codec) -> None:
    file = make(container=container)
    facts = probe_clip(file)
    assert (facts.container, facts.video.codec) == (named, codec)
    assert facts.size_bytes == len(file.getvalue())


def test_av1_is_called_av1_whoever_decodes_it(encode) -> None:
    assert probe_clip(encode("mp4", "libsvtav1", g="20", preset="12")).video.codec == "av1"
