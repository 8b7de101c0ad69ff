"""Scenes to look at, and the faults put into them."""

import io
from dataclasses import replace

import av
import numpy as np
import pytest

from synthesise import ClipRecipe, encode_scene, planted_trace, synthesise
from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt
from unreel.media.overlay import OverlayTrace

SECOND = 1_000_000
SMALL = ClipRecipe(width=160, height=90, n_frames=6)


@pytest.mark.parametrize("scene", ["room", "street"])
def test_the_fault_that_was_put_in_is_where_the_trace_says(scene) -> None:
    """Outside the fault's boxes the flawed scene is the flawless one, inside it is not."""
    recipe = ClipRecipe(scene=scene, flawed=True, width=320, height=180, n_frames=60)
    trace = planted_trace(recipe)
    flawed, whole = (frames_of(synthesise(replace(recipe, flawed=flag))) for flag in (True, False))
    assert trace.span.start_us == 2_000_000
    for mark in trace.track[2::4]:
        index = round(mark.at_us * 24 / 1_000_000)
        changed = np.abs(flawed[index] - whole[index]).max(axis=-1) > 60
        inside = np.zeros(changed.shape, bool)
        inside[pixels(mark.box, 180, 320)] = True
        assert changed[inside].mean() > 0.02
        assert changed[~inside].mean() < 0.002
    assert np.abs(flawed[40] - whole[40]).max() < 40


def frames_of(data: bytes) -> list[np.ndarray]:
    with av.open(io.BytesIO(data)) as clip:
        return [f.to_ndarray(format="rgb24").astype(int) for f in clip.decode(video=0)]


def pixels(box: Box, height: int, width: int) -> tuple[slice, slice]:
    rows = slice(int(box.y0 * height) - 1, int(box.y1 * height) + 2)
    return rows, slice(int(box.x0 * width) - 1, int(box.x1 * width) + 2)


@pytest.mark.parametrize("scene", ["room", "street"])
def test_a_scene_follows_from_its_seed(scene) -> None:
    recipe = replace(SMALL, scene=scene, seed=5)
    assert encode_scene(recipe) == encode_scene(recipe)
    assert synthesise(recipe) != synthesise(replace(recipe, seed=6))


@pytest.mark.parametrize("size", [(64, 64), (90, 160), (322, 182)])
@pytest.mark.parametrize("scene", ["room", "street"])
def test_a_scene_is_drawn_in_any_shape(scene, size) -> None:
    width, height = size
    recipe = replace(SMALL, scene=scene, width=width, height=height, n_frames=2)
    assert frames_of(synthesise(recipe))[0].std() > 20


def test_a_fault_needs_a_scene_that_has_one_and_a_clip_that_lasts() -> None:
    with pytest.raises(InvalidValueError, match="knows no fault"):
        ClipRecipe(flawed=True)
    with pytest.raises(InvalidValueError, match="flawed=True"):
        planted_trace(replace(SMALL, scene="room"))
    with pytest.raises(InvalidValueError, match="ends before"):
        planted_trace(replace(SMALL, scene="room", flawed=True))


def test_a_mark_moves_straight_between_its_boxes_and_rests_outside_them() -> None:
    mark = OverlayTrace(
        span=TimeSpan(SECOND, 4 * SECOND),
        track=(
            BoxAt(2 * SECOND, Box(0, 0, 0.2, 0.2)),
            BoxAt(3 * SECOND, Box(0.4, 0.4, 0.8, 0.6)),
        ),
    )
    at = {s: mark.box_at(round(s * SECOND)) for s in (0.5, 1, 2, 2.5, 3, 3.9, 4)}
    assert at[0.5] is None
    assert at[4] is None
    assert at[1] == at[2] == Box(0, 0, 0.2, 0.2)
    assert at[2.5] == Box(0.2, 0.2, 0.5, 0.4)
    assert at[3] == at[3.9] == Box(0.4, 0.4, 0.8, 0.6)
    assert OverlayTrace(span=TimeSpan(0, SECOND)).box_at(0) is None
