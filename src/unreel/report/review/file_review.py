"""Review of one clip: opinions of reviewers, and checks of the file's origin, made side by side."""

import asyncio
from collections.abc import Callable, Sequence

from unreel.asking.asker import Asker
from unreel.core.clip import Clip
from unreel.core.settings import read_environment_settings
from unreel.evaluation.opinion import Opinion
from unreel.evaluation.review import Review, ReviewQuestions, review_clip, review_clip_variants
from unreel.media.perturb import ClipVariant
from unreel.media.reader import MediaReader
from unreel.report.review.file_origin import FileOriginChecks, FileOriginSettings, check_file_origin
from unreel.reviewers.factory import ReviewerWithPrices

_FIRST_ASK_S = 0.2


async def review_file(
    clip: Clip,
    reviewers: Sequence[ReviewerWithPrices],
    questions: ReviewQuestions,
    *,
    reader: MediaReader,
    asker: Asker,
    origin_settings: FileOriginSettings = FileOriginSettings(),  # noqa: B008  frozen
    perturb: bool = False,
    on_opinion: Callable[[Opinion], None] = lambda _opinion: None,
    on_variant: Callable[[ClipVariant], None] = lambda _variant: None,
) -> tuple[Review, FileOriginChecks]:
    """Ask `reviewers` about `clip`, check its file, and return both results.

    With `perturb`, the reviewers are asked again about variants of the clip; `on_variant` is called
    before each is made, `on_opinion` after each answer about the clip itself.
    """

    async def ask() -> Review:
        review = await review_clip(
            clip, reviewers, inquiry=questions, asker=asker, on_opinion=on_opinion
        )
        if not perturb:
            return review
        return await review_clip_variants(
            review,
            reviewers,
            questions=questions,
            asker=asker,
            reader=reader,
            on_variant=on_variant,
        )

    task = asyncio.create_task(ask())
    try:
        # Send the questions first: reading the origin starts a process that slows them down.
        await asyncio.wait([task], timeout=_FIRST_ASK_S)
        origin = await asyncio.to_thread(
            check_file_origin,
            clip,
            reader=reader,
            without_seccomp=bool(read_environment_settings().media_without_seccomp),
            settings=origin_settings,
        )
    except BaseException:
        task.cancel()
        raise
    return await task, origin
