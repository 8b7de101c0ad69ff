"""Options for a user's benchmark: its present path, and permissions."""

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
        help="Allow a table to name files outside its folder. Use it only for your own tables.",
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
        help="Use the present benchmark and recipe, although they differ from those of the run.",
    )(command)


def run_options(command: F) -> F:
    """Add the options for the location of a run's benchmark, and its permissions."""
    moved = click.option(
        "--benchmark",
        "moved_to",
        type=click.Path(exists=True, path_type=Path),
        metavar="PATH",
        help="Present path of the runs' benchmark, if it was moved.",
    )
    return moved(changed_option(outside_option(command)))
