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
    "--gpu", default="h100", show_default=True, help="GPU type to plan for, for example a100."
)
@click.option("--gpus", type=int, help="Number of GPUs.  [default: the recipe's [devices]]")
@click.option("--price", metavar="USD", help="Price of one GPU per hour in USD.")
@click.option(
    "--utilisation",
    type=float,
    metavar="SHARE",
    help="Fraction of the peak speed that the GPUs reach.  [default: that of the model family]",
)
@allow_outside_option
@trusted_option
@json_option
def plan(*, as_json: bool, **options: Any) -> None:
    """Estimate tokens, memory, steps, hours and cost of RECIPE, with the formula.

    RECIPE is a file, or the name of a recipe of unreel. Clips are counted in the benchmark if it is
    present, otherwise taken from the recipe. Trains nothing.

    Exits with status 1 if a device has too little memory.
    """
    LazyImport("unreel.cli.train.plan_job:print_training_plan", extra="eval").load()(
        options, as_json=as_json
    )
