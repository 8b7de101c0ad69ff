"""`unreel annotate publish`: write the consensus of a campaign as a benchmark."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.annotate import consensus_rule_options, ledger_option
from unreel.cli.options import media_option
from unreel.cli.output import json_option
from unreel.core.registry import LazyImport


@click.command()
@click.argument("campaign")
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="New folder for the benchmark.",
)
@click.option(
    "--benchmark",
    metavar="PATH",
    type=click.Path(exists=True, path_type=Path),
    help="New path of the campaign's benchmark, if it has been moved since `unreel annotate push`.",
)
@consensus_rule_options
@media_option("copy", "link")
@click.option(
    "--keep-undecided",
    is_flag=True,
    help="Also publish clips without a consensus, with the label from the original benchmark. Only for the interfaces reality and pass-fail.",
)
@click.option(
    "--names",
    "named",
    is_flag=True,
    help="Publish the names of the annotators instead of aliases such as annotator-1.",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    help="Random seed for the confidence intervals and the annotators' aliases.",
)
@ledger_option
@json_option
def publish(*, as_json: bool, **options: Any) -> None:
    """Write the consensus of CAMPAIGN as a benchmark for `eval` and `train`.

    The folder also contains every judgement unchanged, the consensus with dissenting annotators, the
    annotators' scores in the metrics of models, and a card with their agreement. Annotators appear under
    numbers unless --names is given.

    Exits with status 1 if clips were excluded.
    """
    LazyImport("unreel.cli.annotate.publish_job:publish_campaign", "annotate").load()(
        options, as_json=as_json
    )
