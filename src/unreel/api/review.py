"""`review`: review of one clip by models, from Python."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from contextvars import copy_context
from pathlib import Path
from typing import Any, TypeVar, Unpack

from unreel.api.keyword_types import (
    Model,
    Models,
    ReviewerKeys,
    Way,
    convert_condition_to_fields,
    require_parser_name,
    require_reviewer_object,
)
from unreel.asking.asker import Asker
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.failure import Failure
from unreel.core.settings import EnvironmentSettings, read_environment_settings
from unreel.evaluation.review import (
    Review,
    ReviewQuestions,
    build_review_questions,
    build_reviewer_factories,
    probe_clip_file,
    review_clip,
    review_clip_variants,
)
from unreel.media.access import open_media_reader
from unreel.protocols.protocol import REVIEWED, Mode
from unreel.recipes.validation import drop_unset_keys
from unreel.reviewers.factory import ReviewerFactory, ReviewerPool, wrap_open_reviewer

T = TypeVar("T")


def run_coroutine_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine `work` to its end and return its result.

    If an event loop already runs, as in notebooks, another thread is used.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = Future()

    async def run() -> T:
        task = asyncio.create_task(work)
        begun.set_result((asyncio.get_running_loop(), task))
        return await task

    with ThreadPoolExecutor(1, "unreel") as executor:
        waiting = executor.submit(copy_context().run, asyncio.run, run())
        try:
            return waiting.result()
        except KeyboardInterrupt:
            loop, task = begun.result()
            with suppress(RuntimeError):  # the event loop is closed already
                loop.call_soon_threadsafe(task.cancel)
            raise


def review(
    clip: str | Path,
    *,
    models: Models,
    protocols: str | Sequence[str] = REVIEWED,
    condition: Way | None = None,
    trusted: bool = False,
    parser: Mode = "lenient",
    perturb: bool = False,
    scan: int = 24,
    **reviewer: Unpack[ReviewerKeys],
) -> Review:
    """Ask `models` about the video file `clip`: real or generated, where, when and why.

    Nothing is stored. A missing answer, or an exception of a reviewer, is an opinion with a
    failure.

    Args:
        clip: Path of a video file.
        models: Model names such as `provider/name`, a baseline such as `coin`, your own objects, or
            several.
        protocols: The protocols: `trace`, `realism`, `reality`.
        condition: Input settings, for example `{"sampling": "uniform-16"}`.
        trusted: Open the file in this process; by default a confined child does.
        parser: `lenient` also reads common variations of the requested format, `strict` only that
            format.
        perturb: Ask again about the clip recompressed, scaled and cropped, 4 times the questions;
            `stabilities` of the review contains the result.
        scan: For clips longer than one minute: maximum number of questions to each model, each
            about one time window; 0 disables the search.
        reviewer: Further keys of `[reviewer]`, for example `deadline_s=30`.

    Raises:
        UnreadableSourceError: The file is not a readable clip.
        InvalidSettingError: A setting is unsupported.
        UnknownNameError: No protocol or parser has that name.
    """
    work = review_async(
        clip,
        models=models,
        protocols=protocols,
        condition=condition,
        trusted=trusted,
        parser=parser,
        perturb=perturb,
        scan=scan,
        **reviewer,
    )
    return run_coroutine_blocking(work)


async def review_async(
    clip: str | Path,
    *,
    models: Models,
    protocols: str | Sequence[str] = REVIEWED,
    condition: Way | None = None,
    trusted: bool = False,
    parser: Mode = "lenient",
    perturb: bool = False,
    scan: int = 24,
    **reviewer: Unpack[ReviewerKeys],
) -> Review:
    """Review a clip like `review`, as a coroutine; several clips can be reviewed concurrently."""
    settings = read_environment_settings()
    names = [protocols] if isinstance(protocols, str) else protocols
    if scan not in range(1001):
        raise InvalidSettingError(
            "scan", f"must be 0 to 1000 questions, got {scan!r}", "Give 0 to 1000"
        )
    if not names:
        raise InvalidSettingError(
            "protocols", "none is named", "Leave them out for trace and realism"
        )
    named = [model for model in _list_models(models) if isinstance(model, str)]
    inquiry = build_review_questions(
        names,
        convert_condition_to_fields(condition or {}),
        mode=require_parser_name(parser),
        models=named,
        n_scan=scan,
    )
    factories = _build_reviewer_factories(models, inquiry, settings, drop_unset_keys(reviewer))
    with open_media_reader(settings, trusted=trusted, at_once=("probe", "frames")) as reader:
        probed = await asyncio.to_thread(probe_clip_file, Path(clip), reader)
        if isinstance(probed, Failure):
            raise UnreadableSourceError(
                str(clip), f"{probed.reason.value}: {probed.detail}", probed.reason.remedy
            )
        with closing(Asker(reader)) as asker:
            async with ReviewerPool() as pool:
                ready = [pool.open(factory) for factory in factories]
                result = await review_clip(probed, ready, inquiry=inquiry, asker=asker)
                if not perturb:
                    return result
                return await review_clip_variants(
                    result, ready, questions=inquiry, asker=asker, reader=reader
                )


def _list_models(models: Models) -> Sequence[Model]:
    return [models] if isinstance(models, str) or not isinstance(models, Sequence) else models


def _build_reviewer_factories(
    models: Models,
    questions: ReviewQuestions,
    settings: EnvironmentSettings,
    keys: Mapping[str, Any],
) -> Sequence[ReviewerFactory]:
    """Return the factory of each of `models`, in order; a repeated name is used once."""
    chosen = _list_models(models)
    if not chosen:
        raise InvalidSettingError(
            "models", "no model is named", "Name who is asked, for example 'openai/gpt-5'"
        )
    if keys and not any(isinstance(model, str) for model in chosen):
        setting = next(iter(keys))
        raise InvalidSettingError(setting, "an object has settings of its own", "Leave it out")
    factories: dict[str, ReviewerFactory] = {}
    models_by_name: dict[str, Model] = {}
    for model in chosen:
        require_reviewer_object(model)
        if isinstance(model, str):
            (factory,) = build_reviewer_factories([model], questions, settings=settings, **keys)
        else:
            factory = wrap_open_reviewer(model)
        earlier = models_by_name.setdefault(factory.name, model)
        if earlier is not model and not (isinstance(earlier, str) and isinstance(model, str)):
            raise InvalidSettingError(
                "models", f"two reviewers are named {factory.name!r}", "Give each a name of its own"
            )
        factories.setdefault(factory.name, factory)
    return tuple(factories.values())
