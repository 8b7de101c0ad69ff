"""`unreel annotate polish` and `confirm`: merge rationales with a model, and confirm the texts."""

from typing import Any

import click

from unreel.cli.annotate import ledger_option
from unreel.cli.output import json_option
from unreel.core.registry import LazyImport


@click.command()
@click.argument("campaign")
@click.option(
    "--model",
    help="Language model that merges the annotators' texts, as provider/name@URL. Without it, only the stored merged texts are printed.",
)
@click.option(
    "--again", is_flag=True, help="Merge all texts again, including those with a stored result."
)
@click.option(
    "--quorum",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Minimum number of annotators who must give the same answer, or mark the same trace, for a consensus. Use the same value as for `unreel annotate publish`.",
)
@click.option(
    "--min-overlap",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Minimum number of judgements of a task. A task with fewer has no consensus. Use the same value as for `unreel annotate publish`.",
)
@ledger_option
@json_option
def polish(*, as_json: bool, **options: Any) -> None:
    """Merge the annotators' texts about each clip of CAMPAIGN with a language model.

    The prompt is that of VideoRealBench, and the annotators' own texts are kept. A check flags texts whose meaning may have changed; a polished text is
    used after a person confirmed it. Stored texts are not polished again.

    Exits with status 1 if the model returned no text for a task.
    """
    LazyImport(
        "unreel.cli.annotate.polish_job:polish_campaign_rationales", extra="annotate"
    ).load()(options, as_json=as_json)


@click.command()
@click.argument("campaign")
@click.argument("task")
@click.option(
    "--by", required=True, metavar="NAME", help="Name of the person who makes this decision."
)
@click.option(
    "--reject",
    is_flag=True,
    help="Reject the polished text, because its meaning has changed. The annotators' own texts are used instead.",
)
@ledger_option
@json_option
def confirm(*, as_json: bool, **options: Any) -> None:
    """Confirm that the polished text of TASK (task id or clip name) keeps the annotators' meaning."""
    LazyImport("unreel.cli.annotate.polish_job:confirm_polished_text", extra="annotate").load()(
        options, as_json=as_json
    )
