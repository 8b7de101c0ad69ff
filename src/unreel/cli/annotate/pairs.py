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
    help="Pairs to choose: all pairs of clips with different scores (strict), or the pairs with the highest expected information gain (gain).",
)
@click.option(
    "--clips",
    type=click.Choice(["vrb", "all"]),
    default="vrb",
    show_default=True,
    help="With --plan strict: use 30 clips per score as in VideoRealBench (vrb), or all scored clips (all).",
)
@click.option(
    "--n", type=click.IntRange(1), help="Number of pairs.  [default: strict all, gain 100]"
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Random seed for sampling clips and breaking ties.",
)
@click.option("--campaign", help="With --plan gain: campaign whose answers are used.")
@layout_option
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default="pairs.csv",
    show_default=True,
    help="Table of pairs to write, for `unreel annotate push --pairs`.",
)
@ledger_option
@json_option
def pairs(*, as_json: bool, **options: Any) -> None:
    """Choose the pairs of clips of BENCHMARK that annotators compare.

    strict is VideoRealBench's method: 30 clips scored 1 to 5, and all 345 pairs with different scores. gain
    selects the pairs with the largest expected information; run it again with --campaign after each batch.
    """
    LazyImport("unreel.cli.annotate.pairs_job:write_pair_table", extra="annotate").load()(
        options, as_json=as_json
    )


@click.command()
@click.argument("campaign")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Random seed of the intervals."
)
@ledger_option
@json_option
def rank(*, as_json: bool, **options: Any) -> None:
    """Rank the clips of CAMPAIGN from preferences, or from the answers to one question.

    Strengths follow the Bradley-Terry model. Intervals resample pairs, or annotators if answers were
    converted into pairs.
    """
    LazyImport("unreel.cli.annotate.pairs_job:print_clip_ranking", extra="annotate").load()(
        options, as_json=as_json
    )
