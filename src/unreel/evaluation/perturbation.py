"""Repeated review of a clip on slightly changed variants, to measure the stability of verdicts."""

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from unreel.core.clip import Clip
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import make_safe_file_name
from unreel.evaluation.opinion import ClipVariantOpinions
from unreel.evaluation.review import Review, ReviewQuestions, probe_clip_file, review_clip
from unreel.media.perturb import ClipVariant, plan_clip_variants
from unreel.media.reader import MediaReader
from unreel.reviewers.ask import ReviewDispatcher
from unreel.reviewers.factory import ReviewerWithPrices


async def review_clip_variants(
    review: Review,
    reviewers: Sequence[ReviewerWithPrices],
    *,
    inquiry: ReviewQuestions,
    desk: ReviewDispatcher,
    reader: MediaReader,
    on_variant: Callable[[ClipVariant], None] = lambda _variant: None,
) -> Review:
    """Return `review` with the same reviewers' opinions about each variant of its clip added.

    A variant that cannot be made has a failure instead of opinions. The callback `on_variant` is
    called before each variant is made.
    """
    trials: list[ClipVariantOpinions] = []
    with tempfile.TemporaryDirectory(prefix="unreel-") as folder:
        for variant in plan_clip_variants(review.clip):
            on_variant(variant)
            clip = await asyncio.to_thread(
                _write_clip_variant, variant, review.clip, Path(folder), reader
            )
            if isinstance(clip, Failure):
                trials.append(ClipVariantOpinions(variant=variant, opinions=(), failure=clip))
                continue
            result = await review_clip(clip, reviewers, inquiry=inquiry, desk=desk)
            trials.append(ClipVariantOpinions(variant=variant, opinions=result.opinions))
    return replace(review, trials=tuple(trials))


def _write_clip_variant(
    variant: ClipVariant, clip: Clip, folder: Path, reader: MediaReader
) -> Clip | Failure:
    data = variant.make(clip.location, reader)
    if isinstance(data, Failure):
        return data
    name = f"{make_safe_file_name(Path(clip.location).stem)}+{variant.name}.mp4"
    return probe_clip_file(OutputDirectory(folder).write(name, data), reader)
