"""Lengths by the names of clips, as a test tells them."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from unreel.curation.shots import TOO_SHORT, ClipLengths, draw_target_lengths


def match_lengths(
    lengths_s: Mapping[str, Fraction], wanted_s: Sequence[Fraction], *, seed: int
) -> dict[str, Fraction | None]:
    """The length that each clip is trimmed to; None where it is too short for all that are left."""
    occurring = list({*lengths_s.values(), *wanted_s})
    real = ClipLengths(
        lengths_s=occurring,
        own=np.array([occurring.index(length_s) for length_s in lengths_s.values()], np.int64),
        names=np.array([*lengths_s]),
    )
    wanted = np.array([occurring.index(length_s) for length_s in wanted_s], np.int64)
    drawn = draw_target_lengths(real, wanted, seed=seed)
    return {
        name: None if place == TOO_SHORT else occurring[place]
        for name, place in zip(lengths_s, drawn.tolist(), strict=True)
    }
