"""`unreel annotate quality`: measure the quality of each annotator."""

from typing import Any

import click

from unreel.cli.annotate.options import ledger_option
from unreel.cli.output import json_option, table_format_option
from unreel.core.registry import LazyImport


@click.command()
@click.argument("campaign")
@click.option(
    "--passing",
    type=click.FloatRange(0, 1),
    default=0.8,
    show_default=True,
    help="Minimum fraction of right answers, on tasks with a known answer, for an annotator to count as qualified.",
)
@click.option(
    "--seed", default=0, show_default=True, help="Random seed for the confidence intervals."
)
@ledger_option
@table_format_option
@json_option
def quality(*, as_json: bool, **options: Any) -> None:
    """Print the quality of each annotator of CAMPAIGN, with confidence intervals.

    Right: accuracy on known clips. Informed: dependence of the answers on the clip, measured by all other
    answers. Same answer: agreement with others on the same task. Alarms report annotators whose answers
    changed, who answer without looking, or whose times are unusual. No annotator is excluded
    automatically: use `exclude`.
    """
    LazyImport("unreel.cli.annotate.quality_job:print_annotator_quality", "annotate").load()(
        options, as_json=as_json
    )
