"""Implementation of `evaluate` and `open_run`; it is imported only when they are called."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from unreel.api.keyword_types import Model
from unreel.core.safe_text import sanitise_line
from unreel.core.settings import read_environment_settings
from unreel.engine.progress import Progress, ProgressLine
from unreel.engine.run import ALL_FAILURES
from unreel.evaluation.recipe import validate_eval_recipe
from unreel.evaluation.run_job import EvalRun
from unreel.evaluation.run_job import evaluate as evaluate_run
from unreel.evaluation.run_lookup import build_eval_run, open_named_run
from unreel.media.access import require_sandbox_protection
from unreel.reviewers.config import OBJECT

_BAR = 24


@contextmanager
def show_progress(console: Console | None = None) -> Iterator[ProgressLine]:
    """Show a progress line while the block runs, if `console` is a terminal; yield the line.

    Args:
        console: Console for the line; stderr by default.
    """
    line = ProgressLine()
    target = console or Console(stderr=True, highlight=False)
    if not target.is_terminal:
        yield line
        return
    with Live(console=target, transient=True, get_renderable=lambda: _render_progress_line(line)):
        yield line


def _render_progress_line(line: ProgressLine) -> RenderableType:
    text = Text(sanitise_line(line.text()), no_wrap=True, overflow="ellipsis")
    if line.share is None:
        return text
    row = Table.grid(padding=(0, 1))
    row.add_row(ProgressBar(total=1.0, completed=line.share, width=_BAR), text)
    return row


def run_evaluation(
    fields: Mapping[str, Any],
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
    """Send the missing questions of the recipe with these `fields` to `model`, and return the run at `out`."""
    named = model if isinstance(model, str) else f"{OBJECT}{model.name}"
    recipe = validate_eval_recipe({**fields, "model": named})
    settings = read_environment_settings()
    require_sandbox_protection(settings, trusted=trusted)
    run = build_eval_run(
        recipe, out, settings, trusted=trusted, outside=allow_outside, accept_changed=accept_changed
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


def open_stored_run(
    location: str,
    *,
    benchmark: Path | None = None,
    allow_outside: bool = False,
    accept_changed: bool = False,
) -> EvalRun:
    """Open the evaluation run that is stored at `location`."""
    return open_named_run(
        location,
        read_environment_settings(),
        moved_to=benchmark,
        outside=allow_outside,
        accept_changed=accept_changed,
    )
