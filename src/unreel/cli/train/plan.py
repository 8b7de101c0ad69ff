"""`unreel train plan`: estimate the resources of a training before it starts."""

from typing import Any

import click

from unreel.cli.options import allow_outside_option
from unreel.cli.output import json_option, trusted_option
from unreel.cli.train.options import training_recipe_options
from unreel.core.registry import LazyImport


@click.command()
@training_recipe_options
@click.option(
    "--gpu", default="h100", show_default=True, help="GPU type for the estimate, for example a100."
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
