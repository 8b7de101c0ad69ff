"""Model input of one question: frames at recorded timestamps, or the whole file."""

from pathlib import Path

from unreel.benchmarks.export.item import ExportItem, ExportRecipe
from unreel.core.failure import Failure
from unreel.media.reader import MediaReader, SampledFrame
from unreel.protocols.showing import mark_clip, mark_instant, sample_frames, shows_times

Part = str | SampledFrame | Path
"""A text, a frame, or a whole file."""


def show(
    recipe: ExportRecipe, item: ExportItem, *, media: Path, reader: MediaReader
) -> list[Part] | Failure:
    """The parts to show before the prompt, in order; the clips of a pair are numbered."""
    parts: list[Part] = []
    places = item.places
    for number, place in enumerate(places, start=1):
        if len(places) > 1:
            parts.append(mark_clip(number))
        path = media / place
        if recipe.sampling is None:
            parts.append(path)
            continue
        sampled = sample_frames(
            reader, path, sampling=recipe.sampling, max_pixels=recipe.max_pixels
        )
        if isinstance(sampled, Failure):
            return sampled
        for frame in sampled.frames:
            if shows_times(recipe.protocol, recipe.marks):
                parts.append(mark_instant(frame.at_s))
            parts.append(frame)
    return parts
