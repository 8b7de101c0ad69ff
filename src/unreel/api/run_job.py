"""Implementation of `evaluate` and `open_run`, imported when they run: the job, and its tables."""

import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from unreel.api.models import Model
from unreel.api.progress_display import show_progress
from unreel.core.settings import read_settings
from unreel.engine.progress import Progress
from unreel.engine.progress_line import ProgressLine
from unreel.engine.run import ALL_FAILURES
from unreel.evaluation.finding import open_named_run, plan_run
from unreel.evaluation.job import EvalRun
from unreel.evaluation.job import evaluate as evaluate_run
from unreel.evaluation.recipe import check_recipe
from unreel.media.access import require_protection
from unreel.reviewers.section import OBJECT


def start(  # noqa: PLR0913  what `evaluate` takes
    asked: Mapping[str, Any],
    model: Model,
    *,
    out: str | Path | None,
    engine: str,
    retry_failed: bool,
    trusted: bool,
    allow_outside: bool,
    accept_changed: bool,
    on_progress: Callable[[str, Progress], None] | None,
) -> EvalRun:
    """The run at `out`, once everything that `asked` describes was put to `model`."""
    named = model if isinstance(model, str) else f"{OBJECT}{model.name}"
    recipe = check_recipe({**asked, "model": named})
    settings = read_settings()
    require_protection(settings, trusted=trusted)
    run = plan_run(
        recipe,
        out,
        settings,
        trusted=trusted,
        outside=allow_outside,
        accept_changed=accept_changed,
    )
    with nullcontext(ProgressLine()) if on_progress else show_progress() as line:
        callbacks = line.callbacks(
            on_note=lambda note: warnings.warn(note, UserWarning, stacklevel=5)
        )
        evaluate_run(
            run,
            engine=engine,
            retry_failed=ALL_FAILURES if retry_failed else (),
            reviewer=None if isinstance(model, str) else model,
            callbacks=replace(callbacks, on_step=on_progress or line.step),
        )
    return run


def find(
    place: str,
    *,
    benchmark: Path | None = None,
    allow_outside: bool = False,
    accept_changed: bool = False,
) -> EvalRun:
    """The run that is kept at `place`."""
    return open_named_run(
        place,
        read_settings(),
        moved_to=benchmark,
        outside=allow_outside,
        accept_changed=accept_changed,
    )
