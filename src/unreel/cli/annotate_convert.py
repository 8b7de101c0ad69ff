"""`unreel annotate convert`: marked videos from one tool's file to another's."""

from pathlib import Path
from typing import Any, Final

import click

from unreel.cli.output import json_option
from unreel.core.registry import Lazy

_FORMATS: Final = ("cvat", "labelbox", "label-studio", "unreel")


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--to", "written_as", required=True, type=click.Choice(_FORMATS), help="The format.")
@click.option(
    "--from", "read_as", type=click.Choice(_FORMATS), help="FILE's own.  [default: by its content]"
)
@click.option(
    "--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="New folder."
)
@click.option("--rate", metavar="FPS", help="Frames a second, 30000/1001 for example.")
@click.option("--size", metavar="WIDTHxHEIGHT", help="Pixels of a frame.")
@click.option("--frames", type=click.IntRange(1), help="Frames of a video.")
@json_option
def convert(*, as_json: bool, **given: Any) -> None:
    """Write the marked videos of FILE as another tool's file.

    --rate, --size and --frames stand in where FILE does not say them: CVAT tells no rate, Label Studio no
    size. Whatever the other format has no place for is told.

    Ends with status 1 where something was not written.
    """
    Lazy("unreel.cli.annotate_convert_job:write_converted").load()(given, as_json=as_json)
