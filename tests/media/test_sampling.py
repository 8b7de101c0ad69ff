"""Which frames a sampling takes."""

from bisect import bisect_right
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.errors import UnknownNameError
from unreel.media.sampling import PerSecondSampling, UniformSampling, parse_sampling, plan_frames
from unreel.media.timeline import FrameTimeline

NTSC = Fraction(30000, 1001)
FIVE_SECONDS = FrameTimeline.at_rate(NTSC, n_frames=150)

rates = st.sampled_from([NTSC, Fraction(24), Fraction(8), Fraction(60), Fraction(179, 6)])
steady = st.builds(
    lambda rate, n_frames: FrameTimeline.at_rate(rate, n_frames=n_frames),
    rates,
    st.integers(1, 400),
)
counts = st.integers(1, 64)
wanted_rates = st.fractions(Fraction(1, 10), 120, max_denominator=100)


@st.composite
def uneven(draw: st.DrawFn) -> FrameTimeline:
    gaps = draw(st.lists(st.integers(1, 400), max_size=80))
    ticks = [draw(st.integers(-50, 5000))]
    for gap in gaps:
        ticks.append(ticks[-1] + gap)
    rate = draw(rates)
    return FrameTimeline(
        time_base=Fraction(1, 1000),
        ticks=tuple(ticks),
        last_ticks=draw(st.integers(1, 400)),
        keys=(0,),
        declared_frames=draw(st.integers(0, 200)),
        declared_rate=rate,
        declared_s=len(ticks) / rate,
    )


timelines = steady | uneven()
names = st.one_of(
    counts.map(lambda n: f"uniform-{n}"),
    counts.map(lambda n: f"window-0.25-{n}-{n}"),
    wanted_rates.map(lambda f: f"fps-{f}"),
    st.tuples(wanted_rates, counts).map(lambda both: f"fps-{both[0]}-max-{both[1]}"),
    st.just("paper-8"),
    counts.map(lambda n: f"vlmevalkit-{n}"),
    wanted_rates.map(lambda f: f"vlmevalkit-fps-{f}"),
    counts.map(lambda n: f"video-llava-{n}"),
    counts.map(lambda n: f"video-llava-hf-{n}"),
    st.tuples(wanted_rates, counts).map(lambda both: f"llamafactory-{both[0]}-max-{both[1]}"),
)


def indices(name: str, timeline: FrameTimeline = FIVE_SECONDS) -> tuple[int, ...]:
    return plan_frames(parse_sampling(name), timeline).indices


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("uniform-8", (9, 28, 46, 65, 84, 103, 121, 140)),
        ("uniform-1", (75,)),
        ("window-1-2-4", (33, 41, 48, 56)),
        ("window-4-9-2", (149,)),
        ("fps-2", (0, 14, 29, 44, 59, 74, 89, 104, 119, 134, 149)),
        ("fps-0.5", (0, 59, 119)),
        ("fps-1/2", (0, 59, 119)),
        ("fps-2-max-11", (0, 14, 29, 44, 59, 74, 89, 104, 119, 134, 149)),
        ("fps-2-max-4", (18, 56, 93, 131)),
        ("paper-8", (0, 18, 36, 54, 72, 90, 108, 126)),
        ("vlmevalkit-8", (16, 33, 50, 66, 83, 100, 116, 133)),
        ("vlmevalkit-fps-2", (0, 14, 29, 44, 59, 74, 89, 104, 119, 134)),
        ("llamafactory-2-max-20", (0, 16, 33, 49, 66, 82, 99, 115, 132, 149)),
        ("llamafactory-2.0-max-4", (0, 49, 99, 149)),
        ("video-llava-8", (0, 21, 42, 63, 85, 106, 127, 149)),
        ("video-llava-hf-8", (0, 18, 37, 56, 75, 93, 112, 131)),
        ("dtr", (0, 14, 29, 44, 59, 74, 89, 104, 119, 134, 149)),
        ("dtr-video-llava", (0, 21, 42, 63, 85, 106, 127, 149)),
        ("dtr-llava-onevision", (0, 29, 59, 89, 119, 149)),
    ],
)
def test_the_indices_of_five_seconds_at_ntsc_rate_are_pinned(name, expected) -> None:
    assert indices(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("paper-8", (0, 15, 30, 45, 60, 75, 90, 105)),
        ("vlmevalkit-8", (13, 27, 41, 55, 69, 83, 97, 111)),
        ("vlmevalkit-fps-1", (0, 24, 48, 72, 96)),
        ("llamafactory-1-max-20", (0, 31, 62, 93, 124)),
        ("uniform-4", (15, 46, 78, 109)),
    ],
)
def test_the_indices_of_125_frames_at_24_are_pinned(name, expected) -> None:
    assert indices(name, FrameTimeline.at_rate(Fraction(24), n_frames=125)) == expected


@pytest.mark.parametrize("n_frames", range(1, 8))
def test_a_clip_of_fewer_than_eight_frames_is_taken_whole(n_frames) -> None:
    short = FrameTimeline.at_rate(Fraction(8), n_frames=n_frames)
    assert indices("paper-8", short) == tuple(range(n_frames))
    assert indices("uniform-8", short) == tuple(range(n_frames))


def test_uniform_goes_by_time_and_not_by_frame_number() -> None:
    # Nine frames in the first second, then one that stays for nine.
    still = FrameTimeline(
        time_base=Fraction(1, 9),
        ticks=tuple(range(10)),
        last_ticks=81,
        keys=(0,),
        declared_frames=10,
        declared_rate=Fraction(1),
        declared_s=Fraction(10),
    )
    assert indices("uniform-2", still) == (9,)
    assert indices("vlmevalkit-2", still) == (3, 6)


def test_an_absurd_claim_of_the_header_neither_hangs_nor_escapes_the_clip() -> None:
    for rate, claimed in ((Fraction(1, 1 << 31), 1), (Fraction(1 << 31), 1 << 62)):
        absurd = FrameTimeline(
            time_base=Fraction(1, 10),
            ticks=tuple(range(40)),
            last_ticks=1,
            keys=(0,),
            declared_frames=claimed,
            declared_rate=rate,
            declared_s=1 / rate,
        )
        for name in ("vlmevalkit-fps-2", "llamafactory-2-max-9", "video-llava-hf-8"):
            assert 0 <= indices(name, absurd)[0] <= indices(name, absurd)[-1] < 40


def test_a_clip_too_short_for_a_beat_still_gives_its_first_frame() -> None:
    blink = FrameTimeline.at_rate(Fraction(30), n_frames=3)
    for name in ("fps-1", "vlmevalkit-fps-1", "llamafactory-1-max-8"):
        assert indices(name, blink) == (0,)


@given(names, timelines)
def test_the_name_of_a_plan_gives_the_same_plan(name: str, timeline: FrameTimeline) -> None:
    rule = parse_sampling(name)
    assert parse_sampling(str(rule)) == rule
    assert plan_frames(rule, timeline) == plan_frames(parse_sampling(str(rule)), timeline)


@given(counts, steady)
def test_uniform_takes_as_many_as_asked_and_covers_the_clip(
    n: int, timeline: FrameTimeline
) -> None:
    chosen = plan_frames(UniformSampling(n), timeline).indices
    assert len(chosen) == min(n, timeline.n_frames)
    share = timeline.n_frames / n
    places = [-share / 2, *chosen, timeline.n_frames - 1 + share / 2]
    gaps = [after - now for now, after in pairwise(places)]
    assert max(gaps) <= max(share, 1) + 1


@given(counts, uneven())
def test_uniform_takes_what_is_shown_in_the_middle_of_each_share(n: int, timeline) -> None:
    chosen = plan_frames(UniformSampling(n), timeline).indices
    share = timeline.duration_s / n
    for i in range(n):
        middle = timeline.first_at_s + (i + Fraction(1, 2)) * share
        assert bisect_right(timeline.ticks, middle / timeline.time_base) - 1 in chosen


@given(wanted_rates, timelines)
def test_per_second_takes_what_is_shown_on_each_beat_and_nothing_else(fps, timeline) -> None:
    chosen = plan_frames(PerSecondSampling(fps), timeline).indices
    n_beats = -(-timeline.duration_s * fps // 1)
    assert set(chosen) == {timeline.shown_at(beat / fps) for beat in range(n_beats)}


@given(wanted_rates, counts, timelines)
def test_a_cap_is_kept_and_a_clip_below_it_is_not_touched(fps, at_most, timeline) -> None:
    capped = plan_frames(PerSecondSampling(fps, at_most), timeline).indices
    free = plan_frames(PerSecondSampling(fps), timeline).indices
    assert len(capped) <= at_most
    assert capped == free or len(free) > at_most


@pytest.mark.parametrize(
    "name", ["", "uniform", "uniform-x", "fps-", "paper-16", "every-2nd", "fps-1e9"]
)
def test_an_unknown_name_lists_the_patterns(name) -> None:
    with pytest.raises(UnknownNameError, match="uniform-N"):
        parse_sampling(name)
