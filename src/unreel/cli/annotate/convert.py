"""`unreel annotate convert`: convert video annotations to another tool's format."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from unreel.cli.output import echo, json_option, print_json, print_message
from unreel.core.errors import InvalidSettingError
from unreel.core.output_files import OutputDirectory

_FORMATS: Final = ("cvat", "labelbox", "label-studio", "unreel")


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--to", "written_as", required=True, type=click.Choice(_FORMATS), help="Format of the output."
)
@click.option(
    "--from",
    "read_as",
    type=click.Choice(_FORMATS),
    help="Format of the input FILE.  [default: detected from its content]",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="New folder for the converted annotations.",
)
@click.option(
    "--rate",
    metavar="FPS",
    help="Frame rate of the videos in frames per second, for example 30000/1001, if FILE does not contain it.",
)
@click.option(
    "--size",
    metavar="WIDTHxHEIGHT",
    help="Frame size of the videos in pixels, for example 1280x720, if FILE does not contain it.",
)
@click.option(
    "--frames",
    type=click.IntRange(1),
    help="Number of frames of each video, if FILE does not contain it.",
)
@json_option
def convert(*, as_json: bool, **options: Any) -> None:
    """Convert the annotated videos of FILE to another tool's format.

    --rate, --size and --frames supply values that FILE lacks: CVAT stores no frame rate, Label Studio no
    frame size. Values that the target format cannot store are reported.

    Exits with status 1 if something was not written.
    """
    _write_converted_annotations(options, as_json=as_json)


def _write_converted_annotations(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Write the converted annotations to a folder, print the result, and exit the process."""
    from unreel.annotation.formats.annotated_video import VideoPropertyDefaults
    from unreel.annotation.formats.conversion import AnnotationFormat, convert_annotation_file
    from unreel.annotation.formats.untrusted_input import parse_frame_rate

    width, height = _parse_frame_size(options["size"])
    rate = parse_frame_rate(options["rate"]) if options["rate"] else None
    if options["rate"] and rate is None:
        _raise_invalid_option("--rate", options["rate"], "Write 25 or 30000/1001")
    done = convert_annotation_file(
        options["file"],
        read_as=AnnotationFormat(options["read_as"]) if options["read_as"] else None,
        written_as=AnnotationFormat(options["written_as"]),
        folder=OutputDirectory(options["out"], published=True),
        defaults=VideoPropertyDefaults(
            rate=rate, n_frames=options["frames"], width=width, height=height
        ),
    )
    if as_json:
        print_json(done)
    else:
        print_message(f"{done.n_videos} videos with {done.n_tracks} tracks, read as {done.read_as}")
        print_message(*(f"  not written: {row}" for row in done.rejected))
        if done.n_rejected > len(done.rejected):
            print_message(f"  and {done.n_rejected - len(done.rejected)} more")
        echo(done.folder)
    sys.exit(1 if done.n_rejected else 0)


def _parse_frame_size(written: str | None) -> tuple[int | None, int | None]:
    from unreel.annotation.formats.untrusted_input import MOST_PIXELS

    if not written:
        return None, None
    match = re.fullmatch(r"([1-9][0-9]{0,4})[xX]([1-9][0-9]{0,4})", written)
    sides = [int(side) for side in match.groups()] if match else []
    if not sides or max(sides) > MOST_PIXELS:
        _raise_invalid_option("--size", written, "Write 1280x720")
    return sides[0], sides[1]


def _raise_invalid_option(option: str, written: str, remedy: str) -> NoReturn:
    raise InvalidSettingError(option, f"cannot use {written!a}", remedy)
