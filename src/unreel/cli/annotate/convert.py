"""`unreel annotate convert`: convert video annotations to another tool's format."""

from pathlib import Path
from typing import Any, Final

import click

from unreel.cli.output import json_option
from unreel.core.registry import LazyImport

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
    LazyImport("unreel.cli.annotate.convert_job:write_converted_annotations").load()(
        options, as_json=as_json
    )
