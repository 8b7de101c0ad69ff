"""`unreel train plan`, `run` and `card`: plan and train a model from a recipe, and print its card."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.options import allow_outside_option
from unreel.cli.output import echo, json_option, print_json, trusted_option
from unreel.cli.train import training_clip_options, training_recipe_options
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

    model_card = read_model_card(checkpoint)
    if as_json:
        print_json(model_card)
    else:
        echo(*format_model_card(model_card).rstrip("\n").split("\n"))


@click.command()
@training_recipe_options
@click.option(
    "--gpu",
    default="h100",
    show_default=True,
    help="GPU type for the estimate: h100, h200, b200, a100, a100-40, l40s, rtx4090 or mi300x.",
)
@click.option(
    "--gpus", type=int, help="Number of GPUs for the estimate.  [default: [devices] of the recipe]"
)
@click.option(
    "--price",
    metavar="USD",
    help="Price of one GPU per hour in US dollars, for the estimated cost.",
)
@click.option(
    "--utilisation",
    type=float,
    metavar="SHARE",
    help="Fraction of the GPUs' peak speed that the training reaches.  [default: the value of the model family]",
)
@allow_outside_option
@trusted_option
@json_option
def plan(*, as_json: bool, **options: Any) -> None:
    """Estimate the tokens, memory, steps, hours and cost of a training with RECIPE.

    Each estimate is printed with its formula. RECIPE is a file, or the name of a recipe of unreel. Clips are counted in
    the benchmark if it is present; otherwise the recipe states their number. Trains nothing.

    Exits with status 1 if a device has too little memory.
    """
    LazyImport("unreel.cli.train.plan_job:print_training_plan", extra="eval").load()(
        options, as_json=as_json
    )
