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
