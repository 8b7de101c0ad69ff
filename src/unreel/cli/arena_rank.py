"""`unreel arena rank`: both boards of a season."""

from typing import Any

import click

from unreel.cli.arena_options import season_argument
from unreel.cli.output import form_option, json_option
from unreel.core.registry import Lazy


@click.command()
@season_argument
@click.option(
    "--title",
    "conditions",
    multiple=True,
    metavar="TITLE",
    help="Rank under the season's condition of this title. Repeat it for several.  [default: all]",
)
@click.option("--resamples", type=click.IntRange(100), help="How often scenes are drawn again.")
@click.option(
    "--nuisance",
    "nuisances",
    multiple=True,
    metavar="NAME",
    help="Add length, resolution or sound of a clip to the skill model. Repeat it for several.",
)
@form_option
@json_option
def rank(*, as_json: bool, **given: Any) -> None:
    """Rank the reviewers and the creators of SEASON by the answers that are there. Nobody is asked.

    SEASON is its TOML file, or the folder in which it was played. Creators of a preference season are ranked by
    how often their clip of two is taken for the real one.
    """
    Lazy("unreel.cli.arena_rank_job:tell_ranks", "eval").load()(given, as_json=as_json)
