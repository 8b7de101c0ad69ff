"""The clips in the package are those of their recipes."""

from io import BytesIO

import pytest

from shipped_clips import PACKAGE, RECIPES, REVIEW_SAMPLE
from synthesise import planted_trace, synthesise
from unreel.evaluation.sample_review import read_sample_traces
from unreel.media.decode import decode_frames
from unreel.media.messages import MAX_PIXELS
from unreel.media.timeline import read_frame_timeline


@pytest.mark.parametrize("name", RECIPES)
def test_a_shipped_clip_shows_what_its_recipe_draws(name: str) -> None:
    shipped, drawn = (
        BytesIO(data) for data in ((PACKAGE / name).read_bytes(), synthesise(RECIPES[name]))
    )
    timeline = read_frame_timeline(shipped, max_pixels=MAX_PIXELS)
    assert timeline == read_frame_timeline(drawn, max_pixels=MAX_PIXELS)
    ends = sorted({0, timeline.n_frames - 1})
    here, there = (
        list(decode_frames(file, timeline, indices=ends, max_pixels=MAX_PIXELS))
        for file in (shipped, drawn)
    )
    # Encoders of other releases may differ by a little noise.
    assert all(abs(a.rgb.astype(int) - b.rgb).mean() < 2 for a, b in zip(here, there, strict=True))


def test_the_shipped_trace_is_the_fault_that_the_recipe_draws() -> None:
    assert read_sample_traces() == (planted_trace(REVIEW_SAMPLE),)
