"""`unreel arena`: competitions between creators and reviewers."""

from collections.abc import Mapping
from typing import Final

import click

from unreel.cli.lazy_group import LazyCommand, LazyCommandGroup
from unreel.core.registry import LazyImport

_WORDS: Final[Mapping[str, LazyCommand]] = {
    "init": LazyCommand(
        LazyImport("unreel.cli.arena.run:init"), "Write a commented season file for a benchmark."
    ),
    "plan": LazyCommand(
        LazyImport("unreel.cli.arena.run:plan"),
        "Print the clips and questions that a season needs.",
    ),
    "run": LazyCommand(LazyImport("unreel.cli.arena.run:run"), "Run a season, or resume it."),
    "people": LazyCommand(
        LazyImport("unreel.cli.arena.people:people"), "Add the votes of people to a season."
    ),
    "rank": LazyCommand(LazyImport("unreel.cli.arena.rank:rank"), "Rank reviewers and creators."),
    "ablations": LazyCommand(
        LazyImport("unreel.cli.arena.watch:ablations"),
        "Measure the effect of each changed setting.",
    ),
    "submit": LazyCommand(
        LazyImport("unreel.cli.arena.submit:submit"), "Submit a creator or a reviewer to a season."
    ),
    "withdraw": LazyCommand(LazyImport("unreel.cli.arena.submit:withdraw"), "Withdraw an entry."),
    "log": LazyCommand(
        LazyImport("unreel.cli.arena.submit:log"), "Print every submission and its result."
    ),
    "watch": LazyCommand(
        LazyImport("unreel.cli.arena.watch:watch"), "Search a season for signs of cheating."
    ),
    "site": LazyCommand(
        LazyImport("unreel.cli.arena.site:site"), "Write static web pages about seasons."
    ),
}


@click.command(cls=LazyCommandGroup, words=_WORDS)
def arena() -> None:
    """Let reviewers judge the clips of creators on one frozen benchmark, and rank both.

    SEASON is a TOML file with the benchmark's hash, the creators, the reviewers and the conditions.
    """
