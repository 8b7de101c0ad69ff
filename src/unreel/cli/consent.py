"""What a person says of a benchmark: where it lies now, and that it may do what is refused otherwise."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def outside_option(command: F) -> F:
    """Add `--allow-outside` to a command that reads tables."""
    return click.option(
        "--allow-outside",
        "outside",
        is_flag=True,
        help="Let a table name files outside its folder: for tables of your own only.",
    )(command)


def weak_cage_option(command: F) -> F:
    """Add `--weak-cage` to a command that runs `command:` programs."""
    return click.option(
        "--weak-cage",
        is_flag=True,
        help="Run `command:` programs without bubblewrap: they can read all that you can read.",
    )(command)


def changed_option(command: F) -> F:
    """Add `--accept-changed` to a command that reads a run and its benchmark."""
    return click.option(
        "--accept-changed",
        is_flag=True,
        help="Go by the benchmark and the recipe as they are now, although the run asked otherwise.",
    )(command)


def run_options(command: F) -> F:
    """Add to a command that opens runs where their benchmark lies, and what it may."""
    moved = click.option(
        "--benchmark",
        "moved_to",
        type=click.Path(exists=True, path_type=Path),
        metavar="PATH",
        help="Where the benchmark of the runs lies now, where it was moved.",
    )
    return moved(changed_option(outside_option(command)))
