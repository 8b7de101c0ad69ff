"""`unreel probe`: print the properties of video files."""

import sys
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import click

from unreel.cli.clip_arguments import ClipPathParamType
from unreel.cli.output import echo, json_option, print_json, print_message, trusted_option
from unreel.core.clip import ClipFacts
from unreel.core.failure import Failure
from unreel.core.settings import read_environment_settings
from unreel.media.access import open_media_reader


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
        print_json([_build_probe_row(path, facts) for path, facts in results.items()])
    else:
        _print_probe_results(results)
    sys.exit(1 if any(isinstance(facts, Failure) for facts in results.values()) else 0)


def _build_probe_row(path: Path, facts: ClipFacts | Failure) -> dict[str, object]:
    return {"file": str(path), "failure" if isinstance(facts, Failure) else "facts": facts}


def _print_probe_results(results: Mapping[Path, ClipFacts | Failure]) -> None:
    for path, facts in results.items():
        if isinstance(facts, Failure):
            print_message(f"{path}: {facts}")
        else:
            echo(path, *_format_clip_facts(facts))


def _format_clip_facts(facts: ClipFacts) -> list[str]:
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
    return lines if facts.audio else [*lines, "  sound  none"]


def _format_frame_rate(rate: Fraction) -> str:
    return str(rate) if rate.denominator == 1 else f"{rate} ({float(rate):.3f})"
