"""`unreel arena ablations` and `watch`: measure the effect of one change, and detect cheating."""

import sys
from typing import Any

import click

from unreel.cli.arena import season_folder_options
from unreel.cli.options import allow_outside_option
from unreel.cli.output import json_option, table_format_option, trusted_option
from unreel.core.registry import LazyImport


@click.command()
@season_folder_options
@click.option(
    "--against",
    metavar="SEASON",
    help="Folder of another season with the same clips. The answers of both seasons are compared.",
)
@table_format_option
@json_option
def ablations(*, as_json: bool, **options: Any) -> None:
    """Print the effect of each change on the answers of SEASON: paired differences with intervals.

    Compares conditions that differ in one setting, settings of a creator, and changed real clips with
    the originals, and estimates each reviewer's bias towards "real". Sends nothing.
    """
    LazyImport("unreel.cli.arena.ablations_job:print_season_ablations", "eval").load()(
        options, as_json=as_json
    )


@click.command()
@season_folder_options
@click.option(
    "--clips",
    is_flag=True,
    help="Also compare the clips of all creators, to find copies of other creators' clips.",
)
@click.option(
    "--canaries",
    is_flag=True,
    help="Print the list of canaries (clips to publish with a wrong label), and exit.",
)
@allow_outside_option
@trusted_option
@json_option
def watch(*, as_json: bool, **options: Any) -> None:
    """Search SEASON for signs of cheating: equal answers, copied clips, and knowledge of the published labels.

    Exits with status 1 if there is a suspicion.
    """
    sys.exit(
        LazyImport("unreel.cli.arena.watch_job:print_cheating_suspicions", "eval").load()(
            options, as_json=as_json
        )
    )
