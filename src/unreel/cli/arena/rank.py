"""`unreel arena rank`: both boards of a season."""

from typing import Any

import click

from unreel.cli.arena.options import season_argument
from unreel.cli.output import json_option, table_format_option
from unreel.core.registry import LazyImport


@click.command()
@season_argument
@click.option(
    "--title",
    "conditions",
    multiple=True,
    metavar="TITLE",
    help="Title of a condition to rank. Repeatable.  [default: all]",
)
@click.option(
    "--resamples",
    type=click.IntRange(100),
    help="Number of bootstrap resamples (over scenes).",
)
@click.option(
    "--nuisance",
    "nuisances",
    multiple=True,
    metavar="NAME",
    help="Add clip length, resolution or sound to the skill model. Repeatable.",
)
@table_format_option
@json_option
def rank(*, as_json: bool, **options: Any) -> None:
    """Rank the reviewers and creators of SEASON by the stored answers. Sends nothing.

    SEASON is its TOML file, or the folder of the season. Creators of a preference season are ranked by the
    fraction of pairs in which their clip is taken for the real one.
    """
    LazyImport("unreel.cli.arena.rank_job:print_ranks", "eval").load()(options, as_json=as_json)
