"""What a reviewer is shown for one question: frames at recorded instants, or the whole file."""

from pathlib import Path
from typing import Final

from unreel.benchmarks.export.item import Item, Recipe
from unreel.core.failure import Failure
from unreel.media.reader import MediaReader, SampledFrame

Part = str | SampledFrame | Path
"""A text, a frame, or a whole file."""

LONGEST_SIDE: Final = 1024
"""Frames are scaled down to this, as `unreel eval` does."""
_TIMED: Final = frozenset({"trace"})
"""Protocols that ask for a time: their frames are shown with their instants, as `unreel eval` does."""


def show(recipe: Recipe, item: Item, *, media: Path, reader: MediaReader) -> list[Part] | Failure:
    """The parts to show before the prompt, in order; the clips of a pair are numbered."""
    parts: list[Part] = []
    places = item.places
    for number, place in enumerate(places, start=1):
        if len(places) > 1:
            parts.append(f"Video {number}:")
        path = media / place
        if recipe.sampling is None:
            parts.append(path)
            continue
        sampled = reader.frames(path, sampling=recipe.sampling, longest_side=LONGEST_SIDE)
        if isinstance(sampled, Failure):
            return sampled
        for frame in sampled.frames:
            if recipe.protocol in _TIMED:
                parts.append(f"{float(frame.at_s):.2f} s")
            parts.append(frame)
    return parts
