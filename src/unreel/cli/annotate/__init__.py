"""`unreel annotate`: human judgements through Label Studio, and the options that its commands share."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from unreel.cli.lazy_group import LazyCommand, LazyCommandGroup
from unreel.cli.output import print_message
from unreel.core.registry import LazyImport

_PASSWORD = re.compile(r"://[^/@]*:[^/@]+@|[?&]password=")
F = TypeVar("F", bound=Callable[..., Any])


def _warn_of_password_in_url(
    _context: click.Context, _option: click.Parameter, address: Any
) -> Any:
    """Print a warning if the ledger's URL on the command line contains a password."""
    if address and _PASSWORD.search(address):
        print_message(
            "--ledger: every user of this machine can read this password in the list of processes. "
            "Set UNREEL_LEDGER or PGPASSWORD, or write ~/.pgpass"
        )
    return address


def ledger_option(command: F) -> F:
    """Add `--ledger`, the URL of the ledger, to a command; `resolve_ledger_url` supplies the default."""
    return click.option(
        "--ledger",
        metavar="ADDRESS",
        callback=_warn_of_password_in_url,
        help="Ledger, the database of all judgements: postgresql://USER@HOST/DATABASE, or an SQLite file for a trial.  [default: the variable UNREEL_LEDGER]",
    )(command)


def label_studio_options(command: F) -> F:
    """Add the options that select a Label Studio server to a command."""
    command = click.option(
        "--in-clear",
        is_flag=True,
        help="Send the access token to --url even if the connection is not encrypted (http).",
    )(command)
    command = click.option(
        "--url",
        metavar="ADDRESS",
        help="URL of a running Label Studio server. Its access token is read from the variable LABEL_STUDIO_API_KEY.  [default: the server started by `unreel annotate up`]",
    )(command)
    return label_studio_state_option(command)


def label_studio_state_option(command: F) -> F:
    """Add the option for the state folder of Label Studio."""
    return click.option(
        "--state",
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder for the secrets, the database and the clip copies of Label Studio.  [default: the folder studio in UNREEL_STATE]",
    )(command)


def consensus_rule_options(command: F) -> F:
    """Add the options that define how judgements become a consensus to a command."""
    command = click.option(
        "--reviews",
        type=click.IntRange(0),
        default=0,
        show_default=True,
        help="Number of people who must accept the consensus of a task. Annotators of that task do not count.",
    )(command)
    command = click.option(
        "--method",
        type=click.Choice(["majority", "dawid-skene"]),
        default="majority",
        show_default=True,
        help="Weights of the annotators. majority: all equal; dawid-skene: by their estimated accuracy.",
    )(command)
    command = click.option(
        "--min-overlap",
        type=click.IntRange(1),
        default=2,
        show_default=True,
        help="Minimum number of judgements of a task. A task with fewer has no consensus.",
    )(command)
    return click.option(
        "--quorum",
        type=click.IntRange(1),
        default=2,
        show_default=True,
        help="Minimum number of annotators who must give the same answer, or mark the same trace, for a consensus.",
    )(command)


def select_consensus_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return, from all options of a command, the values of those that `consensus_rule_options` adds."""
    return {name: options[name] for name in ("quorum", "min_overlap", "method", "reviews")}


_WORDS: Mapping[str, LazyCommand] = {
    "up": LazyCommand(LazyImport("unreel.cli.annotate.commands:up"), "Start Label Studio."),
    "push": LazyCommand(
        LazyImport("unreel.cli.annotate.commands:push"), "Create annotation tasks in Label Studio."
    ),
    "links": LazyCommand(
        LazyImport("unreel.cli.annotate.commands:links"), "Print the link of each annotator."
    ),
    "pull": LazyCommand(
        LazyImport("unreel.cli.annotate.commands:pull"), "Fetch the annotators' answers."
    ),
    "status": LazyCommand(
        LazyImport("unreel.cli.annotate.commands:status"),
        "Print progress and speed of each annotator.",
    ),
    "report": LazyCommand(
        LazyImport("unreel.cli.annotate.commands:report"),
        "Write a page about a campaign, with disagreements first.",
    ),
    "consensus": LazyCommand(
        LazyImport("unreel.cli.annotate.commands:consensus"),
        "Print the consensus and the disagreements of each task.",
    ),
    "review": LazyCommand(
        LazyImport("unreel.cli.annotate.commands:review"),
        "Accept the consensus of a task, or send it back.",
    ),
    "quality": LazyCommand(
        LazyImport("unreel.cli.annotate.commands:quality"),
        "Print the quality of each annotator, with alarms.",
    ),
    "exclude": LazyCommand(
        LazyImport("unreel.cli.annotate.commands:exclude"),
        "Exclude an annotator's judgements; they stay in the ledger.",
    ),
    "include": LazyCommand(
        LazyImport("unreel.cli.annotate.commands:include"),
        "Include an annotator's judgements again.",
    ),
    "polish": LazyCommand(
        LazyImport("unreel.cli.annotate.commands:polish"),
        "Merge the annotators' texts with a language model.",
    ),
    "confirm": LazyCommand(
        LazyImport("unreel.cli.annotate.commands:confirm"),
        "Confirm that a polished text keeps its meaning.",
    ),
    "publish": LazyCommand(
        LazyImport("unreel.cli.annotate.commands:publish"), "Write the consensus as a benchmark."
    ),
    "pairs": LazyCommand(
        LazyImport("unreel.cli.annotate.commands:pairs"), "Choose pairs of clips to compare."
    ),
    "rank": LazyCommand(
        LazyImport("unreel.cli.annotate.commands:rank"), "Rank clips by preferences."
    ),
}


@click.command(cls=LazyCommandGroup, words=_WORDS)
def annotate() -> None:
    """Annotate clips with people in Label Studio, and compute their consensus.

    The ledger stores every judgement unchanged; consensus, reviews and exclusions are computed from it.
    """
