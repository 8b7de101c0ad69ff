"""Options that several commands of `unreel arena` take."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from unreel.cli.completion import list_path_completions
from unreel.core.estimate import Estimate, Measured


def format_value_with_interval(found: Measured | None, places: int) -> str:
    """Format a measured value with its confidence interval; return "" if nothing was measured."""
    if not isinstance(found, Estimate):
        return ""
    return f"{found.value:.{places}f} [{found.low:.{places}f}, {found.high:.{places}f}]"


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
