"""`unreel train run` and `card`: train a model from a recipe, and print the card of a model."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.output import echo, json_option, print_json
from unreel.cli.train.options import training_clip_options, training_recipe_options
from unreel.core.registry import LazyImport


@click.command()
@training_recipe_options
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the model and the checkpoints.  [default: trainings/NAME]",
)
@click.option(
    "--resume",
    "going",
    flag_value="resume",
    help="Resume an interrupted training. The command fails if there is none.",
)
@click.option(
    "--fresh",
    "going",
    flag_value="fresh",
    help="Delete the existing checkpoints, and start the training again.",
)
@training_clip_options
def run(*, as_json: bool, **options: Any) -> None:
    """Train the model of RECIPE, and write it to OUT/model.

    A second call resumes, also after kill -9. Ctrl-C saves a checkpoint after the current step.
    """
    LazyImport("unreel.cli.train.run_job:train_from_recipe", "train").load()(
        options, as_json=as_json
    )


@click.command()
@click.argument("checkpoint", type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
def card(*, checkpoint: Path, as_json: bool) -> None:
    """Print the card of CHECKPOINT: data, recipe, licences, scores and limits."""
    from unreel.training.model_card import format_model_card, read_model_card

    found = read_model_card(checkpoint)
    if as_json:
        print_json(found)
    else:
        echo(*format_model_card(found).rstrip("\n").split("\n"))
