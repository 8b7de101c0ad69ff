"""All clips of the shared set: timeline, decode and facts against a plain decode by PyAV."""

import zlib
from fractions import Fraction
from pathlib import Path

import av
import pytest

from unreel.media.container import MAX_PIXELS
from unreel.media.decode import decode_frames
from unreel.media.probe import probe
from unreel.media.sampling import FramePlan, parse_plan, plan_frames
from unreel.media.sound import NoSound, Sound, read_sound
from unreel.media.timeline import Timeline, read_timeline

PLANS = ("uniform-8", "paper-8")
N_PARTS = 9
MANIFEST_COUNTS_ONE_LESS = {"g081", "r003"}
"""PyAV's own decode gives one frame more than the manifest says."""


def plans_of(timeline: Timeline) -> list[FramePlan]:
    return [plan_frames(parse_plan(name), timeline) for name in PLANS]


def plain_decode(path: Path, wanted: set[int]) -> tuple[list[Fraction], dict[int, int]]:
    """The instants of all frames, and checksums of the wanted ones."""
    instants: list[Fraction] = []
    sums: dict[int, int] = {}
    with av.open(str(path)) as container:
        container.streams.video[0].thread_type = "AUTO"
        for index, frame in enumerate(container.decode(video=0)):
            instants.append(frame.pts * frame.time_base)
            if index in wanted:
                sums[index] = zlib.crc32(frame.to_ndarray(format="rgb24").tobytes())
    return instants, sums


@pytest.mark.parametrize("part", range(N_PARTS))
def test_every_frame_of_every_clip_is_at_its_exact_time(shared_clips, part) -> None:
    assert len(shared_clips) == 144
    with_jumps = 0
    for place, clip in enumerate(shared_clips[part::N_PARTS]):
        with clip.path.open("rb") as file:
            timeline = read_timeline(file, max_pixels=MAX_PIXELS)
            # Pixels where the decoder may jump, and in a sample of the clips where it cannot.
            compare = len(timeline.keys) > 1 or place == 0
            plans = plans_of(timeline) if compare else []
            indices = sorted({index for plan in plans for index in plan.indices})
            instants, sums = plain_decode(clip.path, set(indices))
            assert [timeline.presented_s(i) for i in range(timeline.n_frames)] == instants, clip.id
            frames = decode_frames(file, timeline, indices=indices, max_pixels=MAX_PIXELS)
            ours = {frame.index: zlib.crc32(frame.rgb.tobytes()) for frame in frames}
            assert ours == sums, clip.id
            with_jumps += len(timeline.keys) > 1
    assert with_jumps > 0


def test_every_clip_has_the_facts_of_the_manifest(shared_clips) -> None:
    for clip in shared_clips:
        with clip.path.open("rb") as file:
            facts = probe(file)
        video = facts.video
        assert (video.width, video.height) == (clip.width, clip.height), clip.id
        assert video.n_frames == clip.n_frames + (clip.id in MANIFEST_COUNTS_ONE_LESS), clip.id
        assert bool(facts.audio) == clip.has_audio, clip.id
        assert abs(video.n_frames / video.average_rate - video.duration_s) < Fraction(1, 8), clip.id


def test_rates_of_the_set_are_exact(shared_clips) -> None:
    rates = {}
    for clip in shared_clips:
        if clip.id in {"r018", "r036", "r051", "r014", "g080", "r007"}:
            with clip.path.open("rb") as file:
                rates[clip.id] = probe(file).video
    assert rates["r018"].average_rate == Fraction(30000, 1001)
    assert rates["r036"].average_rate == Fraction(24000, 1001)
    assert rates["r051"].average_rate == Fraction(2997, 100)
    assert rates["r014"].average_rate == 30  # stored in whole milliseconds
    assert rates["g080"].average_rate == 24  # the last frame ends a little early
    assert rates["r007"].variable_rate  # the cut lost a frame


def test_sound_comes_where_the_manifest_says_so(shared_clips) -> None:
    for clip in shared_clips[::3]:
        with clip.path.open("rb") as file:
            sound = read_sound(file)
        assert isinstance(sound, Sound if clip.has_audio else NoSound), clip.id
