"""`unreel train`: training of a reviewer on human judgements, and the options that its commands share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from unreel.cli.lazy_group import LazyCommand, LazyCommandGroup
from unreel.cli.options import allow_outside_option
from unreel.cli.output import json_option, trusted_option
from unreel.core.registry import LazyImport

F = TypeVar("F", bound=Callable[..., Any])


def training_recipe_options(command: F) -> F:
    """Add the argument RECIPE, `--data` and `--set` to a command."""
    options = (
        click.argument("recipe"),
        click.option(
            "--data",
            multiple=True,
            type=click.Path(exists=True),
            metavar="PATH",
            help="Benchmark that replaces the one in a [[data]] section of the recipe. Repeatable: the first is for the first section, and so on.",
        ),
        click.option(
            "--set",
            "changes",
            multiple=True,
            metavar="SECTION.KEY=VALUE",
            help="Value that replaces a setting of the recipe, for example optimise.epochs=2. Repeatable.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def training_clip_options(command: F) -> F:
    """Add the options of commands that open the clips of a training recipe to a command."""
    leak = click.option(
        "--accept-leak",
        is_flag=True,
        help="Continue even if the training data contains clips of the evaluation set.",
    )
    return leak(allow_outside_option(trusted_option(json_option(command))))


_WORDS = {
    "run": LazyCommand(
        LazyImport("unreel.cli.train.commands:run"), "Train a model, or resume a training."
    ),
    "card": LazyCommand(
        LazyImport("unreel.cli.train.commands:card"), "Print the card of a checkpoint."
    ),
    "recipes": LazyCommand(
        LazyImport("unreel.cli.train.commands:recipes"), "List the recipes of unreel."
    ),
    "examples": LazyCommand(
        LazyImport("unreel.cli.train.commands:examples"), "Write a page with training examples."
    ),
    "export": LazyCommand(
        LazyImport("unreel.cli.train.commands:export"),
        "Export the training data for another trainer.",
    ),
    "compare": LazyCommand(
        LazyImport("unreel.cli.train.compare:compare"), "Compare two checkpoints."
    ),
}


@click.command(cls=LazyCommandGroup, words=_WORDS)
def train() -> None:
    """Train a model on human judgements with one recipe.

    RECIPE is a TOML file, or the name of a recipe of unreel: see `unreel train recipes`.
    """
