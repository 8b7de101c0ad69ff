"""`unreel train export`: write the training examples of a recipe for another trainer."""

from pathlib import Path
from typing import Any, Final

import click

from unreel.cli.options import media_option
from unreel.cli.train import training_clip_options, training_recipe_options
from unreel.core.registry import LazyImport

_TRAINERS: Final = ("llamafactory", "ms-swift", "qwen-vl-finetune", "videollama3")


@click.command()
@training_recipe_options
@click.option(
    "--to",
    "trainer",
    required=True,
    type=click.Choice(_TRAINERS),
    help="Training framework to export for.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="New folder for the exported data and media files.",
)
@media_option("link", "copy", name="keeping")
@click.option(
    "--as-frames",
    "as_film",
    is_flag=True,
    help='Export a list of the sampled frames in place of each video file. Only for recipes with input = "video".',
)
@training_clip_options
def export(*, as_json: bool, **options: Any) -> None:
    """Export the training data of RECIPE for another trainer, with its settings.

    Boxes use the coordinate space of the trainer's resize. Differences from unreel are printed and stored
    in unreel-export.json.

    Exits with status 1 if rows could not be written.
    """
    LazyImport("unreel.cli.train.export_job:export_training_data", extra="eval").load()(
        options, as_json=as_json
    )
