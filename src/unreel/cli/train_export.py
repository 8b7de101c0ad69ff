"""`unreel train export`: the examples of a recipe for another trainer."""

from pathlib import Path
from typing import Any, Final

import click

from unreel.cli.consent import outside_option
from unreel.cli.output import json_option, trusted_option
from unreel.core.registry import Lazy

_TRAINERS: Final = ("llamafactory", "ms-swift", "qwen-vl-finetune", "videollama3")


@click.command()
@click.argument("recipe")
@click.option("--to", "trainer", required=True, type=click.Choice(_TRAINERS), help="The trainer.")
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="New folder for rows and media."
)
@click.option(
    "--data", multiple=True, metavar="PATH", help="Benchmark of each [[data]], in their order."
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="SECTION.KEY=VALUE",
    help="Change the recipe, for example input=frames. Repeatable.",
)
@click.option(
    "--media",
    "keeping",
    type=click.Choice(["link", "copy"]),
    default="link",
    show_default=True,
    help="What happens to clips: they are never encoded anew.",
)
@click.option(
    "--as-frames",
    "as_film",
    is_flag=True,
    help="Under input=video: give our own frames as the video, instead of the clip.",
)
@click.option("--accept-leak", is_flag=True, help="Train on what will be scored.")
@outside_option
@trusted_option
@json_option
def export(*, as_json: bool, **given: Any) -> None:
    """Write what RECIPE teaches as a folder that another trainer reads, with its settings.

    Boxes are written in the space that this trainer's resize gives. What it cannot do as unreel does is
    told, and stands in unreel-export.json.

    Ends with status 1 where rows could not be written.
    """
    Lazy("unreel.cli.train_export_job:write_export", extra="train").load()(given, as_json=as_json)
