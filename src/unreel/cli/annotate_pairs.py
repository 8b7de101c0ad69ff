"""`unreel annotate pairs` and `rank`: what is compared, and the order that comes of it."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.annotate_options import ledger_option
from unreel.cli.columns import layout_option
from unreel.cli.output import json_option
from unreel.core.registry import Lazy


@click.command()
@click.argument("benchmark", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--plan",
    required=True,
    type=click.Choice(["strict", "gain"]),
    help="All pairs of different scores, or those whose results tell most.",
)
@click.option(
    "--clips",
    type=click.Choice(["vrb", "all"]),
    default="vrb",
    show_default=True,
    help="Under strict: VideoRealBench's 30 by score, or all that are scored.",
)
@click.option(
    "--n", type=click.IntRange(1), help="Pairs to choose.  [default: strict all, gain 100]"
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Draws clips and settles ties."
)
@click.option("--campaign", help="Under gain: weigh what this campaign's people said already.")
@layout_option
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default="pairs.csv",
    show_default=True,
    help="Table for `push --pairs`.",
)
@ledger_option
@json_option
def pairs(*, as_json: bool, **given: Any) -> None:
    """Choose the pairs of clips of BENCHMARK that people compare.

    strict is VideoRealBench's way: 30 clips scored 1 to 5, and all 345 pairs of different scores. gain asks
    first what is least known, and again after each batch that was judged: give it the campaign.
    """
    Lazy("unreel.cli.annotate_pairs_job:write_plan", extra="annotate").load()(
        given, as_json=as_json
    )


@click.command()
@click.argument("campaign")
@click.option("--seed", type=int, default=0, show_default=True, help="Draws for intervals.")
@ledger_option
@json_option
def rank(*, as_json: bool, **given: Any) -> None:
    """Put the clips of CAMPAIGN in order, from preferences or from one question's answers.

    Strengths are Bradley and Terry's, with intervals. Intervals draw pairs anew, or whole annotators where
    answers were turned into pairs.
    """
    Lazy("unreel.cli.annotate_pairs_job:tell_ranking", extra="annotate").load()(
        given, as_json=as_json
    )
