"""`unreel arena`: competitions between creators and reviewers, and the options that its commands share."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from unreel.cli.lazy_group import LazyCommand, LazyCommandGroup
from unreel.cli.options import list_path_completions
from unreel.core.estimate import Estimate, Measured
from unreel.core.registry import LazyImport


def format_value_with_interval(value: Measured | None, places: int) -> str:
    """Format a measured value with its confidence interval; return "" if nothing was measured."""
    if not isinstance(value, Estimate):
        return ""
    return f"{value.value:.{places}f} [{value.low:.{places}f}, {value.high:.{places}f}]"


F = TypeVar("F", bound=Callable[..., Any])


def season_folder_options(command: F) -> F:
    """Add the argument SEASON and `--out`, the folder of the season, to a command."""
    out = click.option(
        "--out",
        metavar="FOLDER",
        help="Folder of the season, with its clips and answers.  [default: seasons/NAME]",
    )
    return click.argument("season", shell_complete=list_path_completions)(out(command))


def only_entrants_option(command: F) -> F:
    """Add `--only` to a command; it limits a run to the named creators and reviewers."""
    return click.option(
        "--only",
        multiple=True,
        metavar="NAME",
        help="Name of a creator or reviewer to include; all others are omitted. Repeatable.  [default: all]",
    )(command)


_WORDS: Mapping[str, LazyCommand] = {
    "init": LazyCommand(
        LazyImport("unreel.cli.arena.commands:init"),
        "Write a commented season file for a benchmark.",
    ),
    "plan": LazyCommand(
        LazyImport("unreel.cli.arena.commands:plan"),
        "Print the clips and questions that a season needs.",
    ),
    "check": LazyCommand(
        LazyImport("unreel.cli.arena.commands:check"),
        "Audit the clips of an entry before it joins.",
    ),
    "run": LazyCommand(LazyImport("unreel.cli.arena.commands:run"), "Run a season, or resume it."),
    "people": LazyCommand(
        LazyImport("unreel.cli.arena.commands:people"), "Add the votes of people to a season."
    ),
    "rank": LazyCommand(
        LazyImport("unreel.cli.arena.commands:rank"), "Rank reviewers and creators."
    ),
    "ablations": LazyCommand(
        LazyImport("unreel.cli.arena.commands:ablations"),
        "Measure the effect of each changed setting.",
    ),
    "site": LazyCommand(
        LazyImport("unreel.cli.arena.commands:site"), "Write static web pages about a season."
    ),
}


@click.command(cls=LazyCommandGroup, words=_WORDS)
def arena() -> None:
    """Let reviewers judge the clips of creators on one frozen benchmark, and rank both.

    SEASON is a TOML file with the benchmark's hash, the creators, the reviewers and the conditions.
    """
