"""Traces in files: measured on what a viewer of the written clip sees."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from curation.injection.fit import TraceFit, measure_fit
from synthesise import ClipRecipe, synthesise
from unreel.core.failure import Failure, FailureReason
from unreel.core.settings import read_environment_settings
from unreel.core.trace import Category, Trace
from unreel.curation.inject.clip_injection import (
    CATEGORIES,
    PLAIN,
    LoadedClip,
    UnsuitableClip,
    find_changed_pixels,
    inject_trace_into_clip,
    load_clip_frames,
    write_clean_twin,
)
from unreel.media.access import open_media_reader
from unreel.media.encode import ClipWriter, VideoTrackSettings
from unreel.media.reader import MediaReader
from unreel.media.sound import ClipSound

RATE = Fraction(24)


@pytest.fixture(scope="module")
def reader() -> Iterator[MediaReader]:
    with open_media_reader(read_environment_settings(), trusted=True) as reader:
        yield reader


@pytest.fixture(scope="module")
def footage(frames, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stage as a file."""
    height, width, _ = frames[0].shape
    track = VideoTrackSettings(
        codec="libx264", width=width, height=height, rate=RATE, time_base=1 / RATE
    )
    path = tmp_path_factory.mktemp("footage") / "stage.mp4"
    with ClipWriter("mp4", track) as writer:
        for tick, frame in enumerate(frames):
            writer.add_picture(frame, tick=tick)
        path.write_bytes(writer.finish())
    return path


@pytest.fixture(scope="module")
def twin(footage: Path, reader: MediaReader) -> Path:
    path = footage.with_name("twin.mp4")
    assert write_clean_twin(footage, reader=reader, into=path) is None
    return path


def load(path: Path, reader: MediaReader) -> LoadedClip:
    clip = load_clip_frames(path, reader=reader)
    assert isinstance(clip, LoadedClip), str(clip)
    return clip


def fit_of(twin: Path, injected: Path, trace: Trace, reader: MediaReader) -> TraceFit:
    clean, changed = load(twin, reader), load(injected, reader)
    return measure_fit(
        clean.pictures, changed.pictures, trace=trace, instants_us=changed.instants_us
    )


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("category", CATEGORIES)
def test_the_boxes_cover_what_differs_once_coded(
    footage, twin, reader, tmp_path, category, seed
) -> None:
    into = tmp_path / "injected.mp4"
    trace = inject_trace_into_clip(footage, reader=reader, category=category, seed=seed, into=into)
    assert isinstance(trace, Trace), str(trace)
    fit = fit_of(twin, into, trace, reader)
    assert fit.n_inside > 100
    assert fit.covered >= 0.9
    assert fit.n_outside_span <= 0.001 * fit.n_inside
    assert fit.fill >= 0.05, "a box is not mostly idle"


def test_before_the_span_not_a_single_pixel_differs(footage, twin, reader, tmp_path) -> None:
    into = tmp_path / "injected.mp4"
    trace = inject_trace_into_clip(
        footage, reader=reader, category=Category.OBJECT_TRAJECTORY, seed=0, into=into
    )
    assert isinstance(trace, Trace)
    clean, changed = load(twin, reader), load(into, reader)
    for index, at_us in enumerate(changed.instants_us):
        if at_us < trace.span.start_us:
            assert np.array_equal(clean.pictures[index], changed.pictures[index])
        elif at_us == trace.span.start_us:
            assert find_changed_pixels(
                clean.pictures[index], changed.pictures[index], levels=PLAIN
            ).any()


def test_the_same_seed_gives_the_same_bytes(footage, reader, tmp_path) -> None:
    paths = [tmp_path / name for name in ("one.mp4", "same.mp4", "other.mp4")]
    for path, seed in zip(paths, (4, 4, 5), strict=True):
        assert isinstance(
            inject_trace_into_clip(
                footage, reader=reader, category=Category.SUDDEN_BLURRING, seed=seed, into=path
            ),
            Trace,
        )
    one, same, other = (path.read_bytes() for path in paths)
    assert one == same
    assert one != other


def test_neither_length_nor_size_nor_key_frames_give_the_trace_away(
    footage, twin, reader, tmp_path
) -> None:
    into = tmp_path / "injected.mp4"
    inject_trace_into_clip(
        footage, reader=reader, category=Category.OBJECT_SPLITTING, seed=0, into=into
    )
    clean, changed = reader.probe(twin), reader.probe(into)
    assert clean.video == changed.video
    assert clean.audio == changed.audio


def test_sound_is_passed_on_in_step_with_the_pictures(reader, tmp_path) -> None:
    path, into = tmp_path / "tone.mp4", tmp_path / "twin.mp4"
    path.write_bytes(synthesise(ClipRecipe(tone_hz=440, n_frames=24)))
    assert write_clean_twin(path, reader=reader, into=into) is None
    before, after = reader.sound(path), reader.sound(into)
    assert isinstance(before, ClipSound)
    assert isinstance(after, ClipSound)
    assert abs(before.duration_s - after.duration_s) < Fraction(1, 10)
    spectra = [np.abs(np.fft.rfft(sound.samples[1600:11200])) for sound in (before, after)]
    tones = [int(spectrum.argmax()) * 16_000 / 9600 for spectrum in spectra]
    assert tones == pytest.approx([440, 440], abs=2)


def test_uneven_instants_are_kept(reader, tmp_path) -> None:
    instants = tuple(Fraction(i * 10 - i % 3, 100) for i in range(20))
    path, into = tmp_path / "uneven.mp4", tmp_path / "twin.mp4"
    path.write_bytes(synthesise(ClipRecipe(n_frames=20, instants_s=instants)))
    assert write_clean_twin(path, reader=reader, into=into) is None
    assert load(into, reader).instants_us == load(path, reader).instants_us


def test_an_unfit_clip_writes_nothing(reader, tmp_path, frames) -> None:
    path, into = tmp_path / "still.mp4", tmp_path / "injected.mp4"
    path.write_bytes(synthesise(ClipRecipe(n_frames=7)))
    result = inject_trace_into_clip(
        path, reader=reader, category=Category.OBJECT_SPLITTING, seed=0, into=into
    )
    assert isinstance(result, UnsuitableClip)
    assert not into.exists()


def test_an_unreadable_clip_is_a_failure(reader, tmp_path) -> None:
    path, into = tmp_path / "junk.mp4", tmp_path / "injected.mp4"
    path.write_bytes(b"this is no clip")
    result = inject_trace_into_clip(
        path, reader=reader, category=Category.SUDDEN_BLURRING, seed=0, into=into
    )
    assert isinstance(result, Failure)
    assert result.reason is FailureReason.FORMAT_REFUSED
    assert isinstance(write_clean_twin(path, reader=reader, into=into), Failure)
    assert not into.exists()
