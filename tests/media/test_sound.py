"""The sound of clips."""

from fractions import Fraction

import numpy as np
import pytest

from unreel.core.failure import FailureReason
from unreel.media import sound as sound_module
from unreel.media.sound import ClipSound, read_mono_sound


@pytest.mark.parametrize("container", ["mp4", "mkv", "webm", "ts"])
def test_a_tone_comes_out_at_its_pitch_at_16_khz(make, container) -> None:
    sound = read_mono_sound(make(container=container, tone_hz=440))
    assert isinstance(sound, ClipSound)
    assert sound.rate_hz == 16_000
    assert abs(sound.duration_s - 2) < Fraction(1, 10)
    middle = sound.as_float()[8_000:24_000]
    loudest = np.argmax(np.abs(np.fft.rfft(middle)))
    assert loudest == 440
    assert 0.1 < np.abs(middle).max() < 0.5


def test_sound_without_end_is_left_at_the_cap(make, failure_of, monkeypatch) -> None:
    monkeypatch.setattr(sound_module, "MAX_SAMPLES", 16_000)
    failure = failure_of(read_mono_sound, make(tone_hz=440))
    assert failure.reason is FailureReason.TOO_LONG


def test_the_start_is_on_the_clock_of_the_frames(make) -> None:
    sound = read_mono_sound(make(container="ts", tone_hz=440))
    assert abs(sound.start_s) < Fraction(1, 10)
    assert "rate_hz=16000" in repr(sound)


@pytest.mark.parametrize("container", ["mp4", "mkv"])
def test_sound_that_begins_before_the_pictures_says_so(make, container) -> None:
    instants = tuple(7 + Fraction(i, 24) for i in range(48))
    sound = read_mono_sound(make(container=container, tone_hz=440, instants_s=instants))
    assert abs(sound.start_s + 7) < Fraction(1, 10)
