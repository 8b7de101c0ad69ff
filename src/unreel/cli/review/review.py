"""`unreel review`: review clips with models, and write evidence pages."""

import asyncio
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from unreel.cli.clip_arguments import ClipBatch, ClipPathParamType, collect_clip_batch
from unreel.cli.options import (
    ProtocolParamType,
    condition_option,
    frame_sampling_options,
    list_model_completions,
    model_input_options,
    parse_condition_options,
)
from unreel.cli.output import json_option, print_json, print_message, trusted_option
from unreel.cli.review.review_job import ReviewCommandOptions, ReviewCommandSession
from unreel.core.errors import InvalidSettingError
from unreel.core.settings import read_environment_settings

_WRITTEN = ("annotated.mp4", "evidence-clip.mp4", "evidence-clip.webm")
"""Names of the videos that evidence contains."""
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("clips", nargs=-1, type=ClipPathParamType())
@click.option(
    "--model",
    "models",
    multiple=True,
    shell_complete=list_model_completions,
    help="Model to ask: provider/name, provider/name@URL, local (the first model on this computer that sees pictures), local/FOLDER, recorded (see --recorded), or a baseline: coin, always-real, always-generated. Repeatable.  [default: none, only the file is examined]",
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
    "--pdf", is_flag=True, help="Also write the page as evidence.pdf. Requires --out and Chromium."
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
def review(
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
    """Examine CLIPS, and ask AI models about them: real or generated, where, when and why.

    Without --model, only the files are examined: tags, Content Credentials, and words and logos over the
    picture. Then model servers that run on this computer are looked for, and the command to ask them is printed.

    CLIPS are video files, or folders whose videos are all reviewed. With --out and several clips, an
    index.html lists them, those that need attention first.

    Stores nothing except with --out. Exits with status 1 if a clip cannot be read, a model does not
    answer, or an answer is unreadable.
    """
    if "local" in typed["models"]:
        from unreel.reviewers.endpoint.servers import require_local_model

        local = require_local_model()
        typed["models"] = tuple(local if model == "local" else model for model in typed["models"])
    conditions = parse_condition_options([condition] if condition else [], nframe=nframe, fps=fps)
    ask = ReviewCommandOptions(condition=conditions[0] if conditions else {}, **typed)
    _require_valid_options(clips, ask)
    browser = _require_pdf_browser(out) if pdf else ""
    batch = collect_clip_batch(clips, out=out)
    outputs = {(out / name).resolve(): name for name in _WRITTEN} if out is not None else {}
    for clip in batch.files:
        if name := outputs.get(clip.resolve()):
            raise InvalidSettingError(
                "--out",
                f"a clip in it would be overwritten by the output {name}",
                "Name another folder",
            )
    from unreel.media.access import open_media_reader

    settings = read_environment_settings()
    reading = open_media_reader(settings, trusted=trusted, at_once=("probe", "frames"))
    with reading as reader, _open_clip_batch(batch, ask) as sampled:
        desk = ReviewCommandSession(
            ask, settings=settings, reader=reader, out=out, browser=browser, quiet=as_json
        )
        rows = asyncio.run(desk.review_all(sampled))
    if not ask.models and not ask.sample:
        from unreel.api.contacts import describe_local_models

        print_message(*describe_local_models(clips))
    if as_json:
        print_json({"note": desk.note, "skipped_links": batch.n_skipped_links, "clips": rows})
    sys.exit(0 if desk.is_complete else 1)


def _require_valid_options(clips: Sequence[Path], options: ReviewCommandOptions) -> None:
    if options.sample and (clips or options.models):
        raise InvalidSettingError(
            "--sample",
            "brings its own clip and answers",
            "Leave out the clips and --model, or leave out --sample",
        )
    if options.sample and options.perturb:
        raise InvalidSettingError(
            "--perturb",
            "the sample's answers are recorded only for its own clip",
            "Leave it out, or name a clip and --model",
        )
    if not options.sample and not clips:
        raise InvalidSettingError(
            "CLIPS", "missing", "Name a video file, or try `unreel review --sample`"
        )
    if options.perturb and not options.models:
        raise InvalidSettingError("--perturb", "no model is named to ask again", "Add --model")


def _require_pdf_browser(out: Path | None) -> str:
    """Return the browser for `--pdf`, before any question; raise if none is installed or `--out` is missing."""
    from unreel.report.review.browser_pdf import find_chromium_browser, lacks_browser_sandbox

    option = "--pdf"
    if out is None:
        raise InvalidSettingError(option, "needs a folder", "Name one with --out FOLDER")
    browser = find_chromium_browser()
    if browser is None:
        raise InvalidSettingError(
            option,
            "no Chromium, Chrome or Edge is installed here",
            "Install one, or leave out --pdf and print evidence.html from any browser",
        )
    if lacks_browser_sandbox():
        print_message("--pdf: Chromium shows the clip without its sandbox, because you are root")
    return browser


@contextmanager
def _open_clip_batch(batch: ClipBatch, options: ReviewCommandOptions) -> Iterator[ClipBatch]:
    """Yield the clips of `batch`; with `--sample`, yield one synthesised clip instead."""
    if not options.sample:
        yield batch
        return
    from unreel.evaluation.sample_review import write_sample_clip

    with tempfile.TemporaryDirectory(prefix="unreel-") as folder:
        yield ClipBatch(files=(write_sample_clip(Path(folder)),))
