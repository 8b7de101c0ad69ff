"""Options that several commands of `unreel annotate` take."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def ledger_option(command: F) -> F:
    """Add `--ledger` to a command; `annotate.ledger.opening.ledger_address` knows the default."""
    return click.option(
        "--ledger",
        metavar="ADDRESS",
        help="Where judgements are kept: postgresql://USER@HOST/DATABASE, or a file for a trial.  "
        "[default: UNREEL_LEDGER]",
    )(command)


def rule_options(command: F) -> F:
    """Add the knobs of a consensus to a command."""
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
