"""`unreel annotate push`: clips of a benchmark before annotators."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.annotate_options import ledger_option, studio_options
from unreel.cli.output import json_option, trusted_option
from unreel.core.registry import Lazy


@click.command()
@click.argument("bench", metavar="BENCH", type=click.Path(exists=True, path_type=Path))
@click.option("--campaign", required=True, metavar="NAME", help="What the campaign is called.")
@click.option(
    "--interface",
    required=True,
    metavar="WORD",
    help="What is asked: screening, trace, realism, preference, reality or pass-fail.",
)
@click.option("--question", default="", help="What pass-fail asks.")
@click.option(
    "--annotators",
    required=True,
    metavar="LIST|FILE",
    help="Who is asked: NAME=ADDRESS with commas between, or a file with one in each line.",
)
@click.option(
    "--overlap",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="How many people judge each task.",
)
@click.option("--seed", default=0, show_default=True, help="Of orders, sides and arms.")
@click.option(
    "--gold",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Tasks with known answers that everybody gets, among the others.",
)
@click.option(
    "--prefill",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSONL of marks that half of the tasks show beforehand; the other half stays blind.",
)
@click.option(
    "--pairs",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Under preference: what `unreel annotate pairs` chose.  [default: all pairs]",
)
@click.option(
    "--guidelines",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="HTML that annotators read first.  [default: the interface's own]",
)
@click.option(
    "--copies",
    "media",
    metavar="s3://BUCKET/PREFIX",
    help="Keep the copies in a store, and let browsers fetch them by links that last 7 days.",
)
@studio_options
@ledger_option
@trusted_option
@json_option
def push(*, as_json: bool, **given: Any) -> None:
    """Bring the clips of BENCH before annotators in Label Studio, each in an order of their own.

    Clips are copied once to a constant rate from 0 on, so that the frame that is marked is the frame that
    was shown. Run it again after a kill, or with new clips in BENCH: what is there stays, and new clips
    become a batch of their own. For screening, BENCH is the folder of `unreel curate`, or its queue.

    Where somebody changed a screen or a task in Label Studio, answers given since are quarantined, and
    the screen or task is restored.

    Ends with status 1 where clips cannot be shown, or somebody changed a room.
    """
    Lazy("unreel.cli.annotate_push_job:push_campaign", "annotate").load()(given, as_json=as_json)
