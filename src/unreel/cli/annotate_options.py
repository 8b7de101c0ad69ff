"""Options that several commands of `unreel annotate` take."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from unreel.cli.output import say

_PASSWORD: Final = re.compile(r"://[^/@]*:[^/@]+@|[?&]password=")
F = TypeVar("F", bound=Callable[..., Any])


def _warn_of_password(_context: click.Context, _option: click.Parameter, address: Any) -> Any:
    """Print a warning if an address on the command line holds a password."""
    if address and _PASSWORD.search(address):
        say(
            "--ledger: every user of this machine can read this password in the list of processes. "
            "Set UNREEL_LEDGER or PGPASSWORD, or write ~/.pgpass"
        )
    return address


def ledger_option(command: F) -> F:
    """Add `--ledger` to a command; `annotate.ledger.opening.ledger_address` knows the default."""
    return click.option(
        "--ledger",
        metavar="ADDRESS",
        callback=_warn_of_password,
        help="Where judgements are kept: postgresql://USER@HOST/DATABASE, or a file for a trial.  "
        "[default: UNREEL_LEDGER]",
    )(command)


def studio_options(command: F) -> F:
    """Add which Label Studio is meant to a command; `annotate.studio.settings` finds it."""
    command = click.option(
        "--in-clear", is_flag=True, help="Let the token travel to --url without encryption."
    )(command)
    command = click.option(
        "--url",
        metavar="ADDRESS",
        help="A Label Studio that runs already; its token is in LABEL_STUDIO_API_KEY.  "
        "[default: the one of `unreel annotate up`]",
    )(command)
    return state_option(command)


def state_option(command: F) -> F:
    """Add where the state of Label Studio lies."""
    return click.option(
        "--state",
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder of Label Studio's secrets, rows and copies.  [default: studio in UNREEL_STATE]",
    )(command)


def rule_options(command: F) -> F:
    """Add the knobs of a consensus to a command."""
    command = click.option(
        "--reviews",
        type=click.IntRange(0),
        default=0,
        show_default=True,
        help="How many who did not judge a task must have accepted what stands for it.",
    )(command)
    command = click.option(
        "--method",
        type=click.Choice(["majority", "dawid-skene"]),
        default="majority",
        show_default=True,
        help="Everybody counts the same, or by how they were seen to answer.",
    )(command)
    command = click.option(
        "--min-overlap",
        type=click.IntRange(1),
        default=2,
        show_default=True,
        help="How many people must have judged a task.",
    )(command)
    return click.option(
        "--quorum",
        type=click.IntRange(1),
        default=2,
        show_default=True,
        help="How many people must say the same, or mark the same fault.",
    )(command)
