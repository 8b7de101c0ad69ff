"""`unreel annotate consensus` and `review`: what stands for a task, and who looked at it."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.annotate_options import ledger_option, rule_options
from unreel.cli.output import form_option, json_option
from unreel.core.registry import Lazy


@click.command()
@click.argument("campaign")
@rule_options
@click.option("--open", "only_open", is_flag=True, help="Show tasks without a consensus alone.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write all of it to a file of JSON too.",
)
@ledger_option
@form_option
@json_option
def consensus(*, as_json: bool, **given: Any) -> None:
    """Tell what the people of CAMPAIGN settled on, task by task, with everybody who said otherwise.

    Nothing is written to the ledger: another rule gives another consensus of the same judgements.

    Ends with status 1 where nothing could be settled.
    """
    job = "unreel.cli.annotate_consensus_job:tell_consensus"
    Lazy(job, "annotate").load()(given, as_json=as_json)


@click.command()
@click.argument("campaign")
@click.argument("task")
@click.option("--accept", "verdict", flag_value="accept", help="What stands may stand.")
@click.option("--send-back", "verdict", flag_value="send-back", help="It must be judged again.")
@click.option("--take", metavar="ANNOTATOR", help="This annotator's word stands.")
@click.option("--by", required=True, metavar="NAME", help="Who looked; nobody who judged the task.")
@click.option("--why", default="", metavar="TEXT", help="Kept beside it; needed to send back.")
@rule_options
@ledger_option
@json_option
def review(*, as_json: bool, **given: Any) -> None:
    """Review what would stand for TASK of CAMPAIGN: its id, or the name of its clip.

    The review is kept in the ledger and holds for this very value: once other judgements change it, the
    task waits for another one.
    """
    job = "unreel.cli.annotate_consensus_job:keep_review"
    Lazy(job, "annotate").load()(given, as_json=as_json)
