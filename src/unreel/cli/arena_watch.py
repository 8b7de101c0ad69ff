"""`unreel arena ablations` and `watch`: what one change does, and who plays foul."""

import sys
from typing import Any

import click

from unreel.cli.arena_options import season_argument
from unreel.cli.consent import outside_option
from unreel.cli.output import form_option, json_option, trusted_option
from unreel.core.registry import Lazy


@click.command()
@season_argument
@click.option(
    "--against",
    metavar="SEASON",
    help="Another season over the same clips, such as one of pairs; its folder.",
)
@form_option
@json_option
def ablations(*, as_json: bool, **given: Any) -> None:
    """Tell what each change does to the answers of SEASON: paired differences with intervals.

    Conditions that differ in one setting, settings of a creator, changed real clips beside the real ones, and how far
    each reviewer leans towards "real". Nobody is asked.
    """
    Lazy("unreel.cli.arena_ablations_job:tell_ablations", "eval").load()(given, as_json=as_json)


@click.command()
@season_argument
@click.option("--clips", is_flag=True, help="Look at the clips too: who shows another's clip.")
@click.option(
    "--canaries", is_flag=True, help="List the clips to publish with a wrong label, and end."
)
@outside_option
@trusted_option
@json_option
def watch(*, as_json: bool, **given: Any) -> None:
    """Look for foul play in SEASON: equal answers, copied clips, and who knows the published labels.

    Ends with status 1 where something is suspected.
    """
    sys.exit(
        Lazy("unreel.cli.arena_watch_job:tell_suspicions", "eval").load()(given, as_json=as_json)
    )
