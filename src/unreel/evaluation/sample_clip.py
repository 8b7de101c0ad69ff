"""Recipe of the sample clip, and the location of its fault."""

from typing import Final

from unreel.core.trace import Trace
from unreel.media.synthesise import ClipRecipe, planted_trace

RECIPE: Final = ClipRecipe(
    scene="street", flawed=True, width=640, height=360, n_frames=120, gop=24, seed=4
)


def sample_truth() -> tuple[Trace, ...]:
    """Return the fault that was put in, exactly."""
    return (planted_trace(RECIPE),)
