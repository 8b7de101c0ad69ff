"""Options that the commands of a season share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from unreel.cli.completing import complete_paths

F = TypeVar("F", bound=Callable[..., Any])


def season_argument(command: F) -> F:
    """Add SEASON and `--out` to a command."""
    out = click.option(
        "--out", metavar="FOLDER", help="Where the season lives.  [default: seasons/NAME]"
    )
    return click.argument("season", shell_complete=complete_paths)(out(command))


def only_option(command: F) -> F:
    """Add `--only` to a command."""
    return click.option(
        "--only",
        multiple=True,
        metavar="NAME",
        help="Only this creator's or reviewer's turn. Repeat it for several.",
    )(command)
