"""`unreel frames`: print or write the frames that a sampling plan selects."""

import sys
from pathlib import Path
from typing import Any

import click

from unreel.cli.clip_arguments import ClipPathParamType
from unreel.cli.output import json_option, print_json, print_message, print_table, trusted_option
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.core.question import SAMPLING_PATTERNS
from unreel.core.safe_names import make_safe_file_name
from unreel.core.settings import read_environment_settings
from unreel.core.span import MICROSECONDS, convert_to_microseconds
from unreel.media.access import open_media_reader
from unreel.media.reader import SampledFrame, SampledFrames
from unreel.protocols.presentation import LEAST_PIXELS


@click.command(epilog=f"Sampling plans: {', '.join(SAMPLING_PATTERNS)}.")
@click.argument("file", type=ClipPathParamType())
@click.option(
    "--sampling",
    default="uniform-8",
    show_default=True,
    metavar="PLAN",
    help="Name of the sampling plan, which selects the frames. The plans are listed at the end of this help.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Output folder for the JPEG pictures. Without it, the selected frames are only listed.",
)
@click.option(
    "--longest-side",
    type=click.IntRange(16),
    metavar="PIXELS",
    help="Maximum length of the longer side of a frame in pixels; larger frames are scaled down.",
)
@click.option(
    "--max-pixels",
    type=click.IntRange(LEAST_PIXELS),
    metavar="N",
    help="Maximum number of pixels per frame; larger frames are scaled down.",
)
@click.option(
    "--quality",
    type=click.IntRange(1, 100),
    default=90,
    show_default=True,
    help="JPEG quality of the pictures.",
)
@trusted_option
@json_option
def frames(  # noqa: PLR0913  one parameter for each option
    *,
    file: Path,
    sampling: str,
    out: Path | None,
    longest_side: int | None,
    max_pixels: int | None,
    quality: int,
    trusted: bool,
    as_json: bool,
) -> None:
    """Print the frames of FILE that a sampling plan selects, with timestamps, and write them as JPEG."""
    with open_media_reader(
        read_environment_settings(), trusted=trusted, at_once=("frames",)
    ) as reader:
        sampled = reader.frames(
            file,
            sampling=sampling,
            quality=quality,
            longest_side=longest_side,
            most_pixels=max_pixels,
        )
    if isinstance(sampled, Failure):
        if as_json:
            print_json({"file": str(file), "failure": sampled})
        else:
            print_message(f"{file}: {sampled}")
        sys.exit(1)
    written = (
        [] if out is None else _write_frames(sampled, out, stem=make_safe_file_name(file.stem))
    )
    rows = [_build_frame_row(frame) for frame in sampled.frames]
    for row, path in zip(rows, written, strict=False):
        row["picture"] = str(path)
    if as_json:
        plan = {"sampling": sampled.sampling, "n_clip_frames": sampled.n_clip_frames}
        print_json({"file": str(file), **plan, "frames": rows})
    else:
        print_message(
            f"{file}: {len(rows)} of {sampled.n_clip_frames} frames by {sampled.sampling}"
        )
        printed = [{**row, "at_s": f"{row['at_us'] / MICROSECONDS:.6f}"} for row in rows]
        print_table(tuple(rows[0]), printed)


def _build_frame_row(frame: SampledFrame) -> dict[str, Any]:
    return {
        "index": frame.index,
        "at_s": frame.at_s,
        "at_us": convert_to_microseconds(frame.at_s),
        "width": frame.width,
        "height": frame.height,
    }


def _write_frames(sampled: SampledFrames, folder: Path, *, stem: str) -> list[Path]:
    into = OutputDirectory(folder)
    return [into.write(f"{stem}-{frame.index:06d}.jpg", frame.data) for frame in sampled.frames]
