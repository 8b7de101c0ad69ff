"""`unreel arena people`: store human votes as reviewers of a season."""

from typing import Any

import click

from unreel.cli.annotate import ledger_option
from unreel.cli.arena import season_folder_options
from unreel.cli.completion import list_path_completions
from unreel.cli.output import json_option
from unreel.core.registry import LazyImport


@click.command()
@season_folder_options
@click.option(
    "--campaign",
    metavar="NAME",
    help="Annotation campaign whose votes are read from the ledger.",
)
@ledger_option
@click.option(
    "--votes",
    metavar="FILE",
    shell_complete=list_path_completions,
    help="CSV or Parquet table of votes, with the columns name (of the clip), voter and label.",
)
@click.option(
    "--named",
    is_flag=True,
    help="Show the names of the annotators of --campaign instead of aliases such as annotator-1.",
)
@json_option
def people(*, as_json: bool, **options: Any) -> None:
    """Store human votes with SEASON: `unreel arena rank` then ranks each voter and their majority.

    Without --campaign or --votes, the votes of the benchmark are used. Votes stored before are replaced.
    """
    LazyImport("unreel.cli.arena.people_job:store_season_votes", "eval").load()(
        options, as_json=as_json
    )
