"""`unreel arena published`: the papers' tables through the arena's own ranking."""

import click

from unreel.cli.output import json_option
from unreel.core.registry import Lazy


@click.command()
@click.option(
    "--quiet", is_flag=True, help="One line for each table, without the figures that differ."
)
@json_option
def published(*, quiet: bool, as_json: bool) -> None:
    """Rank the papers' counts as a season is ranked, and compare with what they print.

    Ends with status 1 where a figure is not the one that `unreel published check` calculates.
    """
    Lazy("unreel.cli.arena_published_job:tell_published").load()(quiet=quiet, as_json=as_json)
