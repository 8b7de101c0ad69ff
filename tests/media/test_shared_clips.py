"""All clips of the shared set: timeline, decode and facts against a plain decode by PyAV."""

import io
import math
import zlib
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from unreel.media.decode import decode_frames
from unreel.media.messages import MAX_PIXELS
from unreel.media.probe import probe_clip
from unreel.media.sampling import FramePlan, parse_sampling, plan_frames
from unreel.media.sound import ClipSound, NoSound, read_mono_sound
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


def test_rates_of_the_set_are_exact(shared_clips) -> None:
    rates = {}
    for clip in shared_clips:
        if clip.id in {"r018", "r036", "r051", "r014", "g080", "r007"}:
            with clip.path.open("rb") as file:
                rates[clip.id] = probe_clip(file).video
    assert rates["r018"].average_rate == Fraction(30000, 1001)
    assert rates["r036"].average_rate == Fraction(24000, 1001)
    assert rates["r051"].average_rate == Fraction(2997, 100)
    assert rates["r014"].average_rate == 30  # stored in whole milliseconds
    assert rates["g080"].average_rate == 24  # the last frame ends a little early
    assert rates["r007"].variable_rate  # the cut lost a frame


def test_sound_comes_where_the_manifest_says_so(shared_clips) -> None:
    for clip in shared_clips[::3]:
        with clip.path.open("rb") as file:
            sound = read_mono_sound(file)
        assert isinstance(sound, ClipSound if clip.has_audio else NoSound), clip.id


def test_llamafactory_plans_take_what_its_loader_takes(shared_clips, make) -> None:
    """Its rule in our words, on the numbers that PyAV gives it, for clips with counts of all kinds."""
    cut = tuple(Fraction(i - 13, 24) for i in range(48))
    smallest = sorted(shared_clips, key=lambda clip: clip.path.stat().st_size)[:8]
    files = [io.BytesIO(clip.path.read_bytes()) for clip in smallest]
    files += [make(container=c, n_frames=48) for c in ("mp4", "mkv", "webm", "ts")]
    files.append(make(instants_s=cut, rate=Fraction(24)))
    claims = set()
    for file in files:
        with av.open(io.BytesIO(file.getvalue())) as container:
            stream = container.streams.video[0]
            claimed, length = stream.frames, stream.duration
            length_s = 0.0 if length is None else float(length * stream.time_base)
            n_decoded = sum(1 for _ in container.decode(stream))
        claims.add(claimed == n_decoded)
        timeline = read_frame_timeline(file, max_pixels=MAX_PIXELS)
        for fps, at_most in ((2, 20), (1, 180), (8, 64)):
            count = min(claimed, at_most, max(1, math.floor(length_s * fps)))
            spread = np.linspace(0, claimed - 1, count).astype(np.int32)
            chosen = set(spread.tolist() if claimed else range(at_most))
            plan = plan_frames(parse_sampling(f"llamafactory-{fps}-max-{at_most}"), timeline)
            assert list(plan.indices) == [i for i in range(n_decoded) if i in chosen]
    assert claims == {True, False}
