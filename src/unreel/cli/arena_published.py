"""`unreel arena published`: the papers' tables through the arena's own ranking."""

import click

from unreel.cli.output import json_option
from unreel.core.registry import LazyImport


@click.command()
@click.option(
    "--quiet", is_flag=True, help="Print one line per table, without the differing figures."
)
@json_option
def published(*, quiet: bool, as_json: bool) -> None:
    """Rank the papers' counts like a season, and compare the result with the printed tables.

    Exits with status 1 if a figure differs from `unreel published check`.
    """
    LazyImport("unreel.cli.arena_published_job:print_published_check").load()(
        quiet=quiet, as_json=as_json
    )
