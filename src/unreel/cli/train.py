"""`unreel train`: a reviewer learned from people's judgements."""

from typing import Final

import click

from unreel.cli.late import LateGroup, Word
from unreel.core.registry import Lazy

_WORDS: Final = {
    "run": Word(Lazy("unreel.cli.train_run:run"), "Train a model, or go on training it."),
    "card": Word(Lazy("unreel.cli.train_run:card"), "Print what is told with a checkpoint."),
    "recipes": Word(
        Lazy("unreel.cli.train_examples:recipes"), "List the recipes that come with unreel."
    ),
    "plan": Word(
        Lazy("unreel.cli.train_plan:plan"), "Tell what a training takes: memory, hours and cost."
    ),
    "examples": Word(
        Lazy("unreel.cli.train_examples:examples"), "Show what a model will see, as a page."
    ),
    "export": Word(
        Lazy("unreel.cli.train_export:export"), "Write the examples for another trainer."
    ),
    "compare": Word(
        Lazy("unreel.cli.train_compare:compare"), "Tell what two checkpoints differ by."
    ),
}


@click.command(cls=LateGroup, words=_WORDS)
def train() -> None:
    """Train a reviewer on people's judgements, by one recipe.

    RECIPE is a TOML file, or the name of one that comes with unreel: see `unreel train recipes`.
    """
