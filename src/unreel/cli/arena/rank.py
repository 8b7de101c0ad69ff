"""`unreel arena rank`: print the leaderboards of a season."""

from typing import Any

import click

from unreel.cli.arena import season_folder_options
from unreel.cli.output import json_option, table_format_option
from unreel.core.registry import LazyImport


@click.command()
@season_folder_options
@click.option(
    "--title",
    "conditions",
    multiple=True,
    metavar="TITLE",
    help="Title of a condition to rank. Repeatable.  [default: all conditions]",
)
@click.option(
    "--resamples",
    type=click.IntRange(100),
    help="Number of bootstrap resamples of the scenes, for the confidence intervals.  [default: 2000]",
)
@click.option(
    "--nuisance",
    "nuisances",
    multiple=True,
    metavar="NAME",
    help="Clip property for which the ranking is adjusted: length, resolution or sound. Repeatable.",
)
@table_format_option
@json_option
def rank(*, as_json: bool, **options: Any) -> None:
    """Rank the reviewers and creators of SEASON by the stored answers. Sends nothing.

    SEASON is its TOML file, or the folder of the season. Creators of a preference season are ranked by the
    fraction of pairs in which their clip is taken for the real one.
    """
    LazyImport("unreel.cli.arena.rank_job:print_season_leaderboards", "eval").load()(
        options, as_json=as_json
    )
