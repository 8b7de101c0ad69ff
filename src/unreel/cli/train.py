"""`unreel train`: a reviewer learned from people's judgements."""

from typing import Final

import click

from unreel.cli.late import LateGroup, Word
from unreel.core.registry import Lazy

_WORDS: Final = {
    "run": Word(Lazy("unreel.cli.train_run:run"), "Train a model, or resume a training."),
    "card": Word(Lazy("unreel.cli.train_run:card"), "Print the card of a checkpoint."),
    "recipes": Word(Lazy("unreel.cli.train_examples:recipes"), "List the recipes of unreel."),
    "plan": Word(
        Lazy("unreel.cli.train_plan:plan"), "Estimate memory, hours and cost of a training."
    ),
    "examples": Word(
        Lazy("unreel.cli.train_examples:examples"), "Write a page with training examples."
    ),
    "export": Word(
        Lazy("unreel.cli.train_export:export"), "Export the training data for another trainer."
    ),
    "compare": Word(Lazy("unreel.cli.train_compare:compare"), "Compare two checkpoints."),
}


@click.command(cls=LateGroup, words=_WORDS)
def train() -> None:
    """Train a model on human judgements with one recipe.

    RECIPE is a TOML file, or the name of a recipe of unreel: see `unreel train recipes`.
    """
