"""`unreel annotate publish`: what people settled on, as a benchmark."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.annotate_options import ledger_option, rule_options
from unreel.cli.output import json_option
from unreel.cli.shared_options import media_option
from unreel.core.registry import Lazy


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
    help="Where the clips are listed now.  [default: where they were when they were pushed]",
)
@rule_options
@media_option("copy", "link")
@click.option(
    "--keep-undecided",
    is_flag=True,
    help="Under reality and pass-fail: keep clips that people did not settle, with their makers' label.",
)
@click.option("--names", "named", is_flag=True, help="People stand under their own names.")
@click.option("--seed", default=0, show_default=True, help="Of intervals, and of people's numbers.")
@ledger_option
@json_option
def publish(*, as_json: bool, **given: Any) -> None:
    """Write what people settled on in CAMPAIGN as a benchmark that `eval` and `train` read.

    Beside it lie every judgement as it was given, what stands and who dissents, what people are worth in
    the figures of models, and a card with how far they agree. Annotators stand under numbers unless
    --names is given.

    Ends with status 1 where clips were left out.
    """
    Lazy("unreel.cli.annotate_publish_job:publish_campaign", "annotate").load()(
        given, as_json=as_json
    )
