"""Asking again about a clip that was changed a little."""

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from unreel.core.clip import Clip
from unreel.core.failure import Failure
from unreel.core.names import plain_name
from unreel.core.writing import Folder
from unreel.evaluate.review import Inquiry, Review, review_clip, survey_clip
from unreel.evaluate.stability import Trial
from unreel.media.perturb import Variant, plan_variants
from unreel.media.reader import MediaReader
from unreel.reviewers.asking import Desk
from unreel.reviewers.opening import OpenReviewer


async def ask_again(
    review: Review,
    reviewers: Sequence[OpenReviewer],
    *,
    inquiry: Inquiry,
    desk: Desk,
    reader: MediaReader,
    on_variant: Callable[[Variant], None] = lambda _variant: None,
) -> Review:
    """`review` with what the same reviewers say of each variant of its clip.

    A variant that cannot be made is a trial with its reason. `on_variant` hears of each before it is made.
    """
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory(prefix="unreel-") as folder:
        for variant in plan_variants(review.clip):
            on_variant(variant)
            clip = await asyncio.to_thread(
                _write_variant, variant, review.clip, Path(folder), reader
            )
            if isinstance(clip, Failure):
                trials.append(Trial(variant=variant, opinions=(), failure=clip))
                continue
            again = await review_clip(clip, reviewers, inquiry=inquiry, desk=desk)
            trials.append(Trial(variant=variant, opinions=again.opinions))
    return replace(review, trials=tuple(trials))


def _write_variant(
    variant: Variant, clip: Clip, folder: Path, reader: MediaReader
) -> Clip | Failure:
    data = variant.make(clip.location, reader)
    if isinstance(data, Failure):
        return data
    name = f"{plain_name(Path(clip.location).stem)}+{variant.name}.mp4"
    return survey_clip(Folder(folder).write(name, data), reader)
