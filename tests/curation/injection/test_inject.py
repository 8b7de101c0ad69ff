"""Known traces: where they are is where the pixels differ."""

import numpy as np
import pytest

from unreel.core.errors import InvalidValueError
from unreel.core.trace import Category
from unreel.curation.inject.clip_injection import (
    CATEGORIES,
    SHORTEST,
    InjectedFrames,
    UnsuitableClip,
    find_changed_pixels,
    find_mask_bounds,
    inject_trace_into_frames,
)

SEEDS = (0, 1, 2)


def test_all_nine_categories_and_no_other_can_be_injected(frames, instants_us) -> None:
    assert set(CATEGORIES) == set(Category) - {Category.OTHER}
    with pytest.raises(InvalidValueError, match="'other' cannot be injected"):
        inject_trace_into_frames(frames, instants_us=instants_us, category=Category.OTHER, seed=0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("category", CATEGORIES)
def test_every_box_touches_the_outermost_changed_pixels(
    put, frames, instants_us, category, seed
) -> None:
    done = put(category, seed)
    height, width, _ = frames[0].shape
    boxes = {mark.at_us: mark.box for mark in done.trace.track}
    assert list(boxes) == [instants_us[index] for index in sorted(done.frames)]
    for index, frame in done.frames.items():
        changed = find_changed_pixels(frames[index], frame)
        assert np.array_equal(changed, done.changed[index])
        around = find_mask_bounds(changed)
        box = boxes[instants_us[index]]
        slack = np.subtract(
            (around.left, around.top, around.right, around.bottom),
            (box.x0 * width, box.y0 * height, box.x1 * width, box.y1 * height),
        )
        assert np.abs(slack).max() <= 1 + 1e-6
        assert changed.mean() < 0.5, "a trace is a part of the picture"


@pytest.mark.parametrize("category", CATEGORIES)
def test_the_span_begins_and_ends_with_the_changed_frames(put, instants_us, category) -> None:
    done = put(category, 1)
    first, last = min(done.frames), max(done.frames)
    assert sorted(done.frames) == list(range(first, last + 1))
    assert first > 0, "a clean frame comes first"
    span = done.trace.span
    assert (span.start_us, span.end_us) == (instants_us[first], instants_us[last + 1])
    assert done.trace.categories == {category}


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_seed_gives_the_same_trace_and_another_seed_another(
    put, frames, instants_us, category
) -> None:
    one, other = put(category, 1), put(category, 2)
    same = inject_trace_into_frames(frames, instants_us=instants_us, category=category, seed=1)
    assert isinstance(same, InjectedFrames)
    assert one.trace == same.trace
    assert all(np.array_equal(one.frames[i], same.frames[i]) for i in one.frames)
    assert other.trace != one.trace


def test_places_are_found_before_a_moving_camera_too(panned, instants_us) -> None:
    for category in (
        Category.SUDDEN_BLURRING,
        Category.BACKGROUND_DISTORTION,
        Category.UNEXPECTED_MOVE,
    ):
        done = inject_trace_into_frames(panned, instants_us=instants_us, category=category, seed=0)
        assert isinstance(done, InjectedFrames)


@pytest.mark.parametrize("category", CATEGORIES)
def test_the_input_frames_stay_as_they_are(frames, instants_us, category) -> None:
    for frame in frames:
        frame.flags.writeable = False
    result = inject_trace_into_frames(frames, instants_us=instants_us, category=category, seed=3)
    assert isinstance(result, InjectedFrames)


def test_the_explanation_says_what_is_wrong_and_where(put) -> None:
    told = {category: put(category, 0).trace.explanation for category in CATEGORIES}
    assert len(set(told.values())) == len(CATEGORIES)
    for text in told.values():
        assert text[0].isupper()
        assert text.endswith(".")
        assert "{" not in text
    assert "blurred" in told[Category.SUDDEN_BLURRING]
    gone = told[Category.OBJECT_DISAPPEARANCE]
    assert "blue object" in gone or "red object" in gone, "the balls of the stage"


@pytest.mark.parametrize("category", CATEGORIES)
@pytest.mark.parametrize(
    "stage",
    [
        pytest.param(lambda i: np.full((120, 160, 3), 90, np.uint8), id="one grey"),
        pytest.param(
            lambda i: np.random.default_rng(i).integers(0, 255, (120, 160, 3), np.uint8), id="noise"
        ),
        pytest.param(lambda i: np.full((120, 160, 3), 255 * (i % 2), np.uint8), id="strobe"),
    ],
)
def test_a_clip_that_lends_itself_to_nothing_is_unfit(stage, category) -> None:
    frames = [stage(index) for index in range(24)]
    result = inject_trace_into_frames(
        frames, instants_us=[i * 40_000 for i in range(24)], category=category, seed=0
    )
    assert isinstance(result, UnsuitableClip)
    assert result.category is category
    assert result.why


@pytest.mark.parametrize(
    "category",
    [
        Category.OBJECT_DISAPPEARANCE,
        Category.REDUNDANT_OBJECT,
        Category.OBJECT_MERGING,
        Category.OBJECT_SPLITTING,
        Category.OBJECT_TRAJECTORY,
    ],
)
def test_a_still_picture_holds_no_moving_object(frames, instants_us, category) -> None:
    still = [frames[0]] * len(frames)
    assert isinstance(
        inject_trace_into_frames(still, instants_us=instants_us, category=category, seed=0),
        UnsuitableClip,
    )


def test_a_clip_may_be_too_short_or_too_small(frames, instants_us) -> None:
    kind = {"category": Category.SUDDEN_BLURRING, "seed": 0}
    n = SHORTEST + 1
    short = inject_trace_into_frames(frames[:n], instants_us=instants_us[:n], **kind)
    tiny = inject_trace_into_frames(
        [frame[:60] for frame in frames], instants_us=instants_us, **kind
    )
    assert isinstance(short, UnsuitableClip)
    assert "fewer than" in str(short)
    assert isinstance(tiny, UnsuitableClip)
    assert "less than 64 pixels" in str(tiny)


@pytest.mark.parametrize("strength", [0, -1, 1.01])
def test_strength_lies_between_nothing_and_all(frames, instants_us, strength) -> None:
    with pytest.raises(InvalidValueError, match="strength"):
        inject_trace_into_frames(
            frames,
            instants_us=instants_us,
            category=Category.SUDDEN_BLURRING,
            seed=0,
            strength=strength,
        )


def test_no_trace_lies_across_a_cut(frames, instants_us) -> None:
    """The second half shows another picture: no span may begin in one and end in the other."""
    other = [255 - frame for frame in frames]
    joined = [*frames[:24], *other[24:]]
    for seed in range(6):
        done = inject_trace_into_frames(
            joined, instants_us=instants_us, category=Category.SUDDEN_BLURRING, seed=seed
        )
        if isinstance(done, InjectedFrames):
            assert max(done.frames) < 24 or min(done.frames) >= 24
