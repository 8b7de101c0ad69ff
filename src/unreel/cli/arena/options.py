"""Options of several commands of `unreel arena`."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from unreel.cli.completion import complete_paths
from unreel.core.estimate import Estimate, Measured


def format_interval(found: Measured | None, places: int) -> str:
    """Format a value with its confidence interval; return "" if nothing was measured."""
    if not isinstance(found, Estimate):
        return ""
    return f"{found.value:.{places}f} [{found.low:.{places}f}, {found.high:.{places}f}]"


F = TypeVar("F", bound=Callable[..., Any])


def season_argument(command: F) -> F:
    """Add SEASON and `--out` to a command."""
    out = click.option(
        "--out", metavar="FOLDER", help="Folder of the season.  [default: seasons/NAME]"
    )
    return click.argument("season", shell_complete=complete_paths)(out(command))


def only_entrants_option(command: F) -> F:
    """Add `--only` to a command, which selects creators and reviewers."""
    return click.option(
        "--only",
        multiple=True,
        metavar="NAME",
        help="Run only this creator or reviewer. Repeatable.",
    )(command)
