"""`unreel probe` and `frames`: properties of video files, and the frames of a sampling plan."""

import sys
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from unreel.cli.clip_arguments import ClipPathParamType
from unreel.cli.output import (
    echo,
    json_option,
    print_json,
    print_message,
    print_table,
    trusted_option,
)
from unreel.core.clip import ClipFacts
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.core.question import SAMPLING_PATTERNS
from unreel.core.safe_names import make_safe_file_name
from unreel.core.settings import read_environment_settings
from unreel.core.span import MICROSECONDS, convert_to_microseconds
from unreel.media.access import open_media_reader
from unreel.media.reader import SampledFrames
from unreel.protocols.presentation import MIN_PIXELS


@click.command()
@click.argument("files", nargs=-1, required=True, type=ClipPathParamType())
@trusted_option
@json_option
def probe(*, files: tuple[Path, ...], trusted: bool, as_json: bool) -> None:
    """Print the exact properties of video FILES: size, frame rate, length, rotation, sound.

    Each file is opened in a sandboxed process. Exits with status 1 if a file cannot be read.
    """
    with open_media_reader(
        read_environment_settings(), trusted=trusted, at_once=("probe",)
    ) as reader:
        results = {path: reader.probe(path) for path in files}
    if as_json:
        print_json(
            [
                {"file": str(path), "failure" if isinstance(facts, Failure) else "facts": facts}
                for path, facts in results.items()
            ]
        )
    else:
        _print_probe_results(results)
    sys.exit(1 if any(isinstance(facts, Failure) for facts in results.values()) else 0)


def _print_probe_results(results: Mapping[Path, ClipFacts | Failure]) -> None:
    for path, facts in results.items():
        if isinstance(facts, Failure):
            print_message(f"{path}: {facts}")
        else:
            video = facts.video
            rate = "variable rate, on average" if video.variable_rate else "constant rate,"
            turn = f", turned by {video.rotation_deg} degrees" if video.rotation_deg else ""
            lines = [
                f"  file   {facts.container}, {facts.size_bytes:,} bytes",
                f"  video  {video.codec} {video.pixel_format}, {video.width} x {video.height}{turn}",
                f"         {video.n_frames} frames, {rate} {_format_frame_rate(video.average_rate)} per second",
                f"         {float(video.duration_s):.6f} s from {float(video.first_at_s):.6f} s",
            ]
            lines += [
                f"  sound  {a.codec}, {a.sample_rate_hz:,} Hz, {a.channels} channels, {float(a.duration_s):.3f} s"
                for a in facts.audio
            ]
            echo(path, *(lines if facts.audio else [*lines, "  sound  none"]))


def _format_frame_rate(rate: Fraction) -> str:
    return str(rate) if rate.denominator == 1 else f"{rate} ({float(rate):.3f})"


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
    type=click.IntRange(MIN_PIXELS),
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
def frames(
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
    rows: list[dict[str, Any]] = [
        {
            "index": frame.index,
            "at_s": frame.at_s,
            "at_us": convert_to_microseconds(frame.at_s),
            "width": frame.width,
            "height": frame.height,
        }
        for frame in sampled.frames
    ]
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


def _write_frames(sampled: SampledFrames, folder: Path, *, stem: str) -> list[Path]:
    into = OutputDirectory(folder)
    return [into.write(f"{stem}-{frame.index:06d}.jpg", frame.data) for frame in sampled.frames]
