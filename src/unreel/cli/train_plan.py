"""`unreel train plan`: what a training will take, before anything starts."""

from typing import Any

import click

from unreel.cli.consent import outside_option
from unreel.cli.output import json_option, trusted_option
from unreel.cli.train_options import recipe_options
from unreel.core.registry import Lazy


@click.command()
@recipe_options
@click.option("--gpu", default="h100", show_default=True, help="Device, for example a100.")
@click.option("--gpus", type=int, help="How many.  [default: as the recipe's [devices] say]")
@click.option("--price", metavar="USD", help="Of one device for an hour.")
@click.option(
    "--utilisation",
    type=float,
    metavar="SHARE",
    help="Part of the peak that the devices reach.  [default: the family's]",
)
@outside_option
@trusted_option
@json_option
def plan(*, as_json: bool, **given: Any) -> None:
    """Tell what RECIPE takes: tokens, memory, steps, hours and cost, with the formula.

    RECIPE is a file, or the name of a recipe that comes with unreel. Clips are counted where the
    benchmark is here, else as the recipe declares them. Nothing is trained.

    Ends with status 1 where the memory of a device is too small.
    """
    Lazy("unreel.cli.train_plan_job:tell_plan", extra="eval").load()(given, as_json=as_json)
