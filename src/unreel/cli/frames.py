"""`unreel probe` and `frames`: properties of video files, and the frames of a sampling plan."""

import sys
from fractions import Fraction
from typing import Any

import click

from unreel.api import media as api
from unreel.cli.options import settings_options
from unreel.cli.output import echo, json_option, print_json, print_message, print_table
from unreel.core.failure import Failure
from unreel.core.question import SAMPLING_PATTERNS
from unreel.core.span import MICROSECONDS, convert_to_microseconds


@click.command()
@settings_options(api.ProbeSettings)
@json_option
def probe(settings: api.ProbeSettings, *, as_json: bool) -> None:
    """Print the exact properties of video FILES: size, frame rate, length, rotation, sound.

    Each file is opened in a sandboxed process. Exits with status 1 if a file cannot be read.
    """
    results = api.probe_files(settings)
    if as_json:
        print_json(
            [
                {"file": str(path), "failure" if isinstance(facts, Failure) else "facts": facts}
                for path, facts in results.items()
            ]
        )
    for path, facts in {} if as_json else results.items():
        if isinstance(facts, Failure):
            print_message(f"{path}: {facts}")
            continue
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
    sys.exit(1 if any(isinstance(facts, Failure) for facts in results.values()) else 0)


def _format_frame_rate(rate: Fraction) -> str:
    return str(rate) if rate.denominator == 1 else f"{rate} ({float(rate):.3f})"


@click.command(epilog=f"Sampling plans: {', '.join(SAMPLING_PATTERNS)}.")
@settings_options(api.FrameSettings)
@json_option
def frames(settings: api.FrameSettings, *, as_json: bool) -> None:
    """Print the frames of FILE that a sampling plan selects, with timestamps, and write them as JPEG."""
    file, result = settings.file, api.sample_frames(settings)
    if isinstance(result, Failure):
        if as_json:
            print_json({"file": str(file), "failure": result})
        else:
            print_message(f"{file}: {result}")
        sys.exit(1)
    sampled, pictures = result
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
    for row, picture in zip(rows, pictures, strict=False):
        row["picture"] = str(picture)
    if as_json:
        plan = {"sampling": sampled.sampling, "n_clip_frames": sampled.n_clip_frames}
        print_json({"file": str(file), **plan, "frames": rows})
        return
    print_message(f"{file}: {len(rows)} of {sampled.n_clip_frames} frames by {sampled.sampling}")
    printed = [{**row, "at_s": f"{row['at_us'] / MICROSECONDS:.6f}"} for row in rows]
    print_table(tuple(rows[0]), printed)
