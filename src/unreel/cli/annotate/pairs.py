"""`unreel annotate pairs` and `rank`: choose clip pairs to compare, and rank clips by the answers."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.annotate import ledger_option
from unreel.cli.options import layout_option
from unreel.cli.output import json_option
from unreel.core.registry import LazyImport


@click.command()
@click.argument("benchmark", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--plan",
    required=True,
    type=click.Choice(["strict", "gain"]),
    help="Method of choosing pairs. strict: all pairs of clips with different scores; gain: the pairs with the largest expected information.",
)
@click.option(
    "--clips",
    type=click.Choice(["vrb", "all"]),
    default="vrb",
    show_default=True,
    help="Clips for --plan strict. vrb: a sample of 30 scored clips, as in VideoRealBench; all: all scored clips.",
)
@click.option(
    "--n",
    type=click.IntRange(1),
    help="Number of pairs to choose.  [default: all for --plan strict, 100 for gain]",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Random seed for the sample of clips and for the choice between equally good pairs.",
)
@click.option(
    "--campaign", help="Campaign whose answers so far guide the choice. Only for --plan gain."
)
@layout_option
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default="pairs.csv",
    show_default=True,
    help="CSV table of pairs to write, for `unreel annotate push --pairs`.",
)
@ledger_option
@json_option
def pairs(*, as_json: bool, **options: Any) -> None:
    """Choose the pairs of clips of BENCHMARK that annotators compare.

    The plan strict is VideoRealBench's method: 30 clips with scores from 1 to 5, and all 345 pairs with
    different scores. The plan gain selects the pairs with the largest expected information; run it again
    with --campaign after each batch.
    """
    LazyImport("unreel.cli.annotate.pairs_job:write_pair_table", extra="annotate").load()(
        options, as_json=as_json
    )


@click.command()
@click.argument("campaign")
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Random seed for the confidence intervals.",
)
@ledger_option
@json_option
def rank(*, as_json: bool, **options: Any) -> None:
    """Rank the clips of CAMPAIGN by preferences, or by the answers to a pass-or-fail question.

    Strengths follow the Bradley-Terry model. Intervals resample pairs, or annotators if answers were
    converted into pairs.
    """
    LazyImport("unreel.cli.annotate.pairs_job:print_clip_ranking", extra="annotate").load()(
        options, as_json=as_json
    )
