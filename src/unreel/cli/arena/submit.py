"""`unreel arena submit`, `withdraw` and `log`: entries of a season, and their results."""

import sys
from typing import Any

import click

from unreel.cli.arena import season_folder_options
from unreel.cli.completion import list_path_completions
from unreel.cli.options import allow_outside_option, weak_cage_option
from unreel.cli.output import json_option, table_format_option, trusted_option
from unreel.core.registry import LazyImport

_JOB = "unreel.cli.arena.submit_job"


@click.command()
@season_folder_options
@click.argument("entry", shell_complete=list_path_completions)
@allow_outside_option
@weak_cage_option
@trusted_option
@json_option
def submit(*, as_json: bool, **options: Any) -> None:
    """Submit a creator or a reviewer: ENTRY is a TOML file, see docs/arena-entries.md.

    The clips are checked before any cost arises: names, length, size, frame rate, sound, licence,
    copies of real clips, watermarks, and file properties that reveal the label. Every submission is
    recorded in the season's log.

    Exits with status 1 if the entry is rejected.
    """
    sys.exit(LazyImport(f"{_JOB}:submit_entry", "eval").load()(options, as_json=as_json))


@click.command()
@season_folder_options
@click.argument("name")
@click.option(
    "--reason",
    default="",
    metavar="TEXT",
    help="Reason for the withdrawal, stored in the log of the season.",
)
@click.option(
    "--retire",
    is_flag=True,
    help="Record the withdrawal as a decision of the organiser instead of the team.",
)
@json_option
def withdraw(*, as_json: bool, **options: Any) -> None:
    """Withdraw the entry NAME from later runs. Its results stay on the leaderboards."""
    LazyImport(f"{_JOB}:withdraw_entry", "eval").load()(options, as_json=as_json)


@click.command()
@season_folder_options
@click.option(
    "--head",
    metavar="HASH",
    help="Hash that the log had at an earlier time. If lines were removed since then, the command reports it and exits with status 1.",
)
@table_format_option
@json_option
def log(*, as_json: bool, **options: Any) -> None:
    """Print every submission, its state and every withdrawal of SEASON, and the number of submissions per team.

    SEASON is its TOML file, or its folder.

    Exits with status 1 if a line was edited, moved or removed.
    """
    sys.exit(
        LazyImport(f"{_JOB}:print_checked_season_log", "eval").load()(options, as_json=as_json)
    )
