"""`unreel arena people`: votes of people as reviewers of a season."""

from typing import Any

import click

from unreel.cli.annotate_options import ledger_option
from unreel.cli.arena_options import season_argument
from unreel.cli.completing import complete_paths
from unreel.cli.output import json_option
from unreel.core.registry import Lazy


@click.command()
@season_argument
@click.option(
    "--campaign", metavar="NAME", help="Votes of a campaign of `unreel annotate`, from its ledger."
)
@ledger_option
@click.option(
    "--votes",
    metavar="FILE",
    shell_complete=complete_paths,
    help="Votes of a table with the columns voter, label and the clip's name.",
)
@click.option("--named", is_flag=True, help="Show annotators by name, and not by an alias.")
@json_option
def people(*, as_json: bool, **given: Any) -> None:
    """Keep people's votes beside SEASON: `unreel arena rank` then shows each of them, and their majority.

    Without --campaign or --votes, the votes that its benchmark holds are taken. What was kept before is replaced.
    """
    Lazy("unreel.cli.arena_people_job:take_votes", "eval").load()(given, as_json=as_json)
