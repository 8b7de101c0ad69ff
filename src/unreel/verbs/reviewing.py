"""`review`: one clip before reviewers, from Python."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from unreel.core.errors import UnreadableSourceError
from unreel.core.failure import Failure
from unreel.core.settings import read_settings
from unreel.evaluate.review import Review, describe_reviewers, inquire, review_clip, survey_clip
from unreel.media.access import media_reader, require_protection
from unreel.protocols.protocol import REVIEWED, Mode
from unreel.reviewers.asking import Desk
from unreel.reviewers.contract import Reviewer
from unreel.reviewers.opening import Opener, ReviewerPool, lend
from unreel.verbs.waiting import wait_for

Models = str | Reviewer | Sequence[str | Reviewer]
"""A name as `--model` takes it, an object that answers sheets, or several of them."""


def review(
    clip: str | Path,
    *,
    models: Models,
    protocols: Sequence[str] = REVIEWED,
    condition: Mapping[str, str] | None = None,
    trusted: bool = False,
    parser: Mode = "strict",
    **reviewer: Any,
) -> Review:
    """Ask `models` about the video file `clip`: real or generated, where, when and why.

    Args:
        clip: path of a video file.
        models: who is asked: `provider/name`, `coin` and so on, or objects of your own.
        protocols: the instruments: `trace`, `realism`, `reality`.
        condition: how the question is put, for example `{"sampling": "uniform-16"}`.
        trusted: open the file in this process; by default a confined child does.
        parser: read the form that was asked for, or (`lenient`) also its usual variations.
        reviewer: further keys of `[reviewer]`, for example `deadline_s=30`.

    Raises:
        UnreadableSourceError: The file is no clip that can be read.
        InvalidSettingError: Something was asked that nobody can do.
    """
    asked = review_async(
        clip,
        models=models,
        protocols=protocols,
        condition=condition,
        trusted=trusted,
        parser=parser,
        **reviewer,
    )
    return wait_for(asked)


async def review_async(
    clip: str | Path,
    *,
    models: Models,
    protocols: Sequence[str] = REVIEWED,
    condition: Mapping[str, str] | None = None,
    trusted: bool = False,
    parser: Mode = "strict",
    **reviewer: Any,
) -> Review:
    """The same as `review`, for whoever has an event loop."""
    settings = read_settings()
    require_protection(settings, trusted=trusted)
    inquiry = inquire(protocols, condition or {}, mode=parser)
    chosen = [models] if isinstance(models, str) or not isinstance(models, Sequence) else models
    openers: list[Opener] = []
    for model in chosen:
        if isinstance(model, str):
            openers += describe_reviewers([model], inquiry, settings=settings, **reviewer)
        else:
            openers.append(lend(model))
    with media_reader(settings, trusted=trusted, at_once=True) as reader:
        found = await asyncio.to_thread(survey_clip, Path(clip), reader)
        if isinstance(found, Failure):
            remedy = "Name a video file; `unreel probe` tells what it is"
            raise UnreadableSourceError(str(clip), str(found), remedy)
        with closing(Desk(reader)) as desk:
            async with ReviewerPool() as pool:
                ready = [pool.open(opener) for opener in openers]
                return await review_clip(found, ready, inquiry=inquiry, desk=desk)
