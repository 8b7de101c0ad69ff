"""Options that the commands of a season share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from unreel.cli.completing import complete_paths

F = TypeVar("F", bound=Callable[..., Any])


def season_argument(command: F) -> F:
    """Add SEASON and `--out` to a command."""
    out = click.option(
        "--out", metavar="FOLDER", help="Folder of the season.  [default: seasons/NAME]"
    )
    return click.argument("season", shell_complete=complete_paths)(out(command))


def only_option(command: F) -> F:
    """Add `--only` to a command."""
    return click.option(
        "--only",
        multiple=True,
        metavar="NAME",
        help="Run only this creator or reviewer. Repeatable.",
    )(command)
