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
@click.option("--open", "only_open", is_flag=True, help="Print only the tasks without a consensus.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="JSON file for the consensus of all tasks. The table is printed as well.",
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
@click.option(
    "--accept", "verdict", flag_value="accept", help="Accept the current consensus of the task."
)
@click.option(
    "--send-back",
    "verdict",
    flag_value="send-back",
    help="Reject the current consensus, and send the task back to its annotators.",
)
@click.option("--take", metavar="ANNOTATOR", help="Annotator whose answer replaces the consensus.")
@click.option(
    "--by",
    required=True,
    metavar="NAME",
    help="Name of the person who makes this decision. It must not be an annotator of the task.",
)
@click.option(
    "--why",
    default="",
    metavar="TEXT",
    help="Reason for the decision, stored in the ledger. Required with --send-back.",
)
@consensus_rule_options
@ledger_option
@json_option
def review(*, as_json: bool, **options: Any) -> None:
    """Accept or send back the consensus of TASK (its id, or the name of its clip) in CAMPAIGN.

    The decision is stored in the ledger and applies to the present consensus. If later judgements change the
    consensus, the task needs another review.
    """
    job = "unreel.cli.annotate.consensus_job:store_consensus_review"
    LazyImport(job, "annotate").load()(options, as_json=as_json)
