"""`unreel train`: training of a reviewer on human judgements."""

from typing import Final

import click

from unreel.cli.lazy_group import LazyCommand, LazyCommandGroup
from unreel.core.registry import LazyImport

_WORDS: Final = {
    "run": LazyCommand(
        LazyImport("unreel.cli.train.run:run"), "Train a model, or resume a training."
    ),
    "card": LazyCommand(LazyImport("unreel.cli.train.run:card"), "Print the card of a checkpoint."),
    "recipes": LazyCommand(
        LazyImport("unreel.cli.train.examples:recipes"), "List the recipes of unreel."
    ),
    "plan": LazyCommand(
        LazyImport("unreel.cli.train.plan:plan"), "Estimate memory, hours and cost of a training."
    ),
    "examples": LazyCommand(
        LazyImport("unreel.cli.train.examples:examples"), "Write a page with training examples."
    ),
    "export": LazyCommand(
        LazyImport("unreel.cli.train.export:export"),
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
