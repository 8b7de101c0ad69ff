"""`unreel review`: review clips with models, and write evidence pages."""

import asyncio
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from unreel.cli.clip_arguments import ClipBatch, ClipPathParamType, collect_clip_batch
from unreel.cli.completion import list_model_completions
from unreel.cli.options import (
    ProtocolParamType,
    condition_option,
    frame_sampling_options,
    model_input_options,
    parse_condition_options,
)
from unreel.cli.output import json_option, print_json, print_message, trusted_option
from unreel.cli.review.review_job import ReviewCommandOptions, ReviewCommandSession
from unreel.core.errors import InvalidSettingError
from unreel.core.settings import read_environment_settings

_WRITTEN: Final = ("annotated.mp4", "evidence-clip.mp4", "evidence-clip.webm")
"""Names of the videos that evidence contains."""
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("clips", nargs=-1, type=ClipPathParamType())
@click.option(
    "--model",
    "models",
    multiple=True,
    shell_complete=list_model_completions,
    help="Model to ask: provider/name, provider/name@URL, local/FOLDER, recorded (see --recorded), or a baseline: coin, always-real, always-generated. Repeatable.",
)
@click.option(
    "--protocol",
    "protocols",
    multiple=True,
    type=ProtocolParamType("clip"),
    help="Protocol of the questions. trace: where, when and why a clip looks generated; realism: a score from 1 to 5; reality: real or generated; locate: every generated segment of a long clip. Repeatable.  [default: trace, realism]",
)
@condition_option(multiple=False)
@frame_sampling_options
@click.option(
    "--parser",
    type=click.Choice(["strict", "lenient"]),
    default="lenient",
    show_default=True,
    help="Parser of the answers. strict: accepts only the requested format; lenient: also accepts common variations.",
)
@click.option(
    "--recorded",
    type=_FILE,
    help="JSON Lines file with existing answers. `--model recorded` returns them instead of asking a model.",
)
@click.option(
    "--prices",
    type=_FILE,
    help="TOML file with the token prices of each model, from which the cost is computed.",
)
@click.option(
    "--deadline",
    "deadline_s",
    type=float,
    help="Timeout of one question in seconds, including retries.  [default: 120]",
)
@model_input_options
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Output folder for the page evidence.html, the video annotated.mp4, still images and result.json.",
)
@click.option(
    "--pdf",
    is_flag=True,
    help="Also write the page as evidence.pdf. Requires --out and Chromium.",
)
@click.option(
    "--record",
    "runs",
    multiple=True,
    metavar="RUN",
    help="Run of `unreel eval` from which the page shows the measured accuracy of a model. Repeatable.",
)
@click.option(
    "--perturb",
    is_flag=True,
    help="Ask all questions again about recompressed, scaled and cropped copies of each clip: 4 times as many questions.",
)
@click.option(
    "--scan",
    "n_scan",
    type=click.IntRange(0, 1000),
    default=24,
    show_default=True,
    help="Maximum number of questions to each model about a clip longer than one minute, each about a different part of the clip. 0 turns these questions off.",
)
@click.option(
    "--sample",
    is_flag=True,
    help="Review a built-in synthetic clip with recorded answers, offline.",
)
@trusted_option
@json_option
def review(  # noqa: PLR0913  one parameter for each option
    *,
    clips: tuple[Path, ...],
    condition: str | None,
    nframe: int | None,
    fps: str | None,
    out: Path | None,
    pdf: bool,
    trusted: bool,
    as_json: bool,
    **typed: Any,
) -> None:
    """Ask AI models about CLIPS: real or generated, where, when and why.

    CLIPS are video files, or folders whose videos are all reviewed. With --out and several clips, an
    index.html lists them, those that need attention first.

    Stores nothing except with --out. Exits with status 1 if a clip cannot be read, a model does not
    answer, or an answer is unreadable.
    """
    conditions = parse_condition_options([condition] if condition else [], nframe=nframe, fps=fps)
    ask = ReviewCommandOptions(condition=conditions[0] if conditions else {}, **typed)
    _require_valid_options(clips, ask)
    browser = _require_pdf_browser(out) if pdf else ""
    batch = collect_clip_batch(clips, out=out)
    outputs = {(out / name).resolve(): name for name in _WRITTEN} if out is not None else {}
    for clip in batch.files:
        if name := outputs.get(clip.resolve()):
            option, problem = "--out", f"a clip in it would be overwritten by the output {name}"
            raise InvalidSettingError(option, problem, "Name another folder")
    from unreel.media.access import open_media_reader

    settings = read_environment_settings()
    reading = open_media_reader(settings, trusted=trusted, at_once=("probe", "frames"))
    with reading as reader, _open_clip_batch(batch, ask) as sampled:
        desk = ReviewCommandSession(
            ask, settings=settings, reader=reader, out=out, browser=browser, quiet=as_json
        )
        rows = asyncio.run(desk.review_all(sampled))
    if as_json:
        print_json({"note": desk.note, "skipped_links": batch.n_skipped_links, "clips": rows})
    sys.exit(0 if desk.is_complete else 1)


def _require_valid_options(clips: Sequence[Path], ask: ReviewCommandOptions) -> None:
    if ask.sample and (clips or ask.models):
        option, remedy = "--sample", "Leave out the clips and --model, or leave out --sample"
        raise InvalidSettingError(option, "brings its own clip and answers", remedy)
    if ask.sample and ask.perturb:
        option, problem = "--perturb", "the sample's answers are recorded only for its own clip"
        raise InvalidSettingError(option, problem, "Leave it out, or name a clip and --model")
    if not ask.sample and not clips:
        argument, remedy = "CLIPS", "Name a video file, or try `unreel review --sample`"
        raise InvalidSettingError(argument, "missing", remedy)
    if not ask.sample and not ask.models:
        option = "--model"
        remedy = "Name a model, such as --model openai/gpt-5, or try --sample, which works offline"
        raise InvalidSettingError(option, "missing", remedy)


def _require_pdf_browser(out: Path | None) -> str:
    """Return the browser for `--pdf`, before any question; raise if none is installed or `--out` is missing."""
    from unreel.report.review.browser_pdf import find_chromium_browser, lacks_browser_sandbox

    option = "--pdf"
    if out is None:
        raise InvalidSettingError(option, "needs a folder", "Name one with --out FOLDER")
    browser = find_chromium_browser()
    if browser is None:
        problem = "no Chromium, Chrome or Edge is installed here"
        remedy = "Install one, or leave out --pdf and print evidence.html from any browser"
        raise InvalidSettingError(option, problem, remedy)
    if lacks_browser_sandbox():
        print_message("--pdf: Chromium shows the clip without its sandbox, because you are root")
    return browser


@contextmanager
def _open_clip_batch(batch: ClipBatch, ask: ReviewCommandOptions) -> Iterator[ClipBatch]:
    """Yield the clips of `batch`; with `--sample`, yield one synthesised clip instead."""
    if not ask.sample:
        yield batch
        return
    from unreel.evaluation.sample_review import write_sample_clip

    with tempfile.TemporaryDirectory(prefix="unreel-") as folder:
        yield ClipBatch(files=(write_sample_clip(Path(folder)),))
