"""`unreel annotate consensus` and `review`: print and review the consensus of a campaign's tasks."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.annotate import consensus_rule_options, ledger_option
from unreel.cli.output import json_option, table_format_option
from unreel.core.registry import LazyImport


@click.command()
@click.argument("campaign")
@consensus_rule_options
@click.option("--open", "only_open", is_flag=True, help="Show only the tasks without a consensus.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the complete result to this JSON file.",
)
@ledger_option
@table_format_option
@json_option
def consensus(*, as_json: bool, **options: Any) -> None:
    """Print the consensus of each task of CAMPAIGN, with the annotators who disagree.

    The ledger is not changed: another rule computes another consensus from the same judgements.

    Exits with status 1 if no task has a consensus.
    """
    job = "unreel.cli.annotate.consensus_job:print_campaign_consensus"
    LazyImport(job, "annotate").load()(options, as_json=as_json)


@click.command()
@click.argument("campaign")
@click.argument("task")
@click.option("--accept", "verdict", flag_value="accept", help="Accept the current consensus.")
@click.option(
    "--send-back", "verdict", flag_value="send-back", help="Send the task back to its annotators."
)
@click.option(
    "--take", metavar="ANNOTATOR", help="Replace the consensus with this annotator's answer."
)
@click.option(
    "--by",
    required=True,
    metavar="NAME",
    help="Name of the person who reviews; it must not be an annotator of the task.",
)
@click.option(
    "--why",
    default="",
    metavar="TEXT",
    help="Reason, stored with the decision. Required with --send-back.",
)
@consensus_rule_options
@ledger_option
@json_option
def review(*, as_json: bool, **options: Any) -> None:
    """Accept or send back the consensus of TASK (its id, or the name of its clip) in CAMPAIGN.

    The decision is stored in the ledger for the present value. If later judgements change the value, the
    task needs another review.
    """
    job = "unreel.cli.annotate.consensus_job:store_consensus_review"
    LazyImport(job, "annotate").load()(options, as_json=as_json)
