"""All clips of the shared set: timeline, decode and facts against a plain decode by PyAV."""

import zlib
from fractions import Fraction
from pathlib import Path

import av
import pytest

from unreel.media.decode import decode_frames
from unreel.media.messages import MAX_PIXELS
from unreel.media.probe import probe_clip
from unreel.media.sampling import FramePlan, parse_sampling, plan_frames
from unreel.media.timeline import FrameTimeline, read_frame_timeline

PLANS = ("uniform-8", "paper-8")
N_PARTS = 9
BY_DEFAULT = 1
"""Parts of the set that every run goes through."""
PARTS = [
    part if part < BY_DEFAULT else pytest.param(part, marks=pytest.mark.slow)
    for part in range(N_PARTS)
]
MANIFEST_COUNTS_ONE_LESS = {"g081", "r003"}
"""PyAV's own decode gives one frame more than the manifest says."""


def plans_of(timeline: FrameTimeline) -> list[FramePlan]:
    return [plan_frames(parse_sampling(name), timeline) for name in PLANS]


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


@pytest.mark.parametrize("part", PARTS)
def test_every_frame_of_every_clip_is_at_its_exact_time(shared_clips, part) -> None:
    assert len(shared_clips) == 144
    with_jumps = 0
    for place, clip in enumerate(shared_clips[part::N_PARTS]):
        with clip.path.open("rb") as file:
            timeline = read_frame_timeline(file, max_pixels=MAX_PIXELS)
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
            facts = probe_clip(file)
        video = facts.video
        assert (video.width, video.height) == (clip.width, clip.height), clip.id
        assert video.n_frames == clip.n_frames + (clip.id in MANIFEST_COUNTS_ONE_LESS), clip.id
        assert bool(facts.audio) == clip.has_audio, clip.id
        assert abs(video.n_frames / video.average_rate - video.duration_s) < Fraction(1, 8), clip.id
