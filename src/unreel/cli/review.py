"""`unreel review`: review clips with models, and write evidence pages."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unreel.api.evaluation import ReviewSettings
from unreel.cli.options import settings_options
from unreel.cli.output import json_option, print_json, print_message
from unreel.cli.process_signals import StopSignalReceived

if TYPE_CHECKING:
    from rich.console import RenderableType

_PIPE_WIDTH = 110


@click.command()
@settings_options(ReviewSettings)
@json_option
def review(settings: ReviewSettings, *, as_json: bool) -> None:
    """Examine CLIPS, and ask AI models about them: real or generated, where, when and why.

    Without --model, only the files are examined: tags, Content Credentials, and words and logos over the
    picture. Then model servers that run on this computer are looked for, and the command to ask them is printed.

    CLIPS are video files, or folders whose videos are all reviewed. With --out and several clips, an
    index.html lists them, those that need attention first.

    Stores nothing except with --out. Exits with status 1 if a clip cannot be read, a model does not
    answer, or an answer is unreadable.
    """
    from unreel.api.contacts import describe_local_models
    from unreel.api.review_files import ReviewCallbacks, review_files

    def print_review(parts: "Iterable[RenderableType]") -> None:
        from unreel.cli.console import open_console

        console = open_console(pipe_width=_PIPE_WIDTH)
        for part in parts:
            console.print(part)

    callbacks = ReviewCallbacks(
        on_note=print_message,
        on_review=None if as_json else print_review,
        show_activity=_show_activity,
        show_copy=_show_copy,
    )
    reviews = review_files(settings, callbacks)
    if not as_json:
        print_message(*reviews.closing_notes)
    if not settings.models and not settings.sample:
        print_message(*describe_local_models(settings.clips))
    if as_json:
        print_json(
            {"note": reviews.note, "skipped_links": reviews.n_skipped_links, "clips": reviews.rows}
        )
    sys.exit(0 if reviews.is_complete else 1)


@contextmanager
def _show_activity() -> Iterator[Callable[[str], None]]:
    from unreel.cli.progress import ProgressMeter

    with ProgressMeter() as meter:
        yield meter.tell


@contextmanager
def _show_copy(n_frames: int, page: Path) -> Iterator[Callable[[int], None]]:
    from unreel.cli.progress import show_video_copy_progress

    try:
        with show_video_copy_progress(n_frames) as on_frames:
            yield on_frames
    except StopSignalReceived as stopped:
        stopped.add_note(f"the answers so far are in {page}, without an annotated copy")
        raise
