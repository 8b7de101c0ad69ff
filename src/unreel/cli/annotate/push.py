"""`unreel annotate push`: create annotation tasks for the clips of a benchmark."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.annotate import label_studio_options, ledger_option
from unreel.cli.output import json_option, trusted_option
from unreel.core.registry import LazyImport


@click.command()
@click.argument("bench", metavar="BENCH", type=click.Path(exists=True, path_type=Path))
@click.option("--campaign", required=True, metavar="NAME", help="Name of the campaign.")
@click.option(
    "--interface",
    required=True,
    metavar="WORD",
    help="Interface: screening, trace, realism, preference, reality or pass-fail.",
)
@click.option(
    "--question",
    default="",
    help="With --interface pass-fail: the question that annotators answer.",
)
@click.option(
    "--annotators",
    required=True,
    metavar="LIST|FILE",
    help="Annotators: NAME=E-MAIL separated by commas, or a file with one per line.",
)
@click.option(
    "--overlap",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="Number of annotators per task.",
)
@click.option(
    "--seed", default=0, show_default=True, help="Random seed of task order, sides and study arms."
)
@click.option(
    "--gold",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Number of tasks with known answers that each annotator receives.",
)
@click.option(
    "--prefill",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSONL file of annotations to pre-fill in a random half of the tasks.",
)
@click.option(
    "--pairs",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With --interface preference: table of `unreel annotate pairs`.  [default: all pairs]",
)
@click.option(
    "--guidelines",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="HTML file with instructions for annotators.  [default: the interface's own]",
)
@click.option(
    "--copies",
    "media",
    metavar="s3://BUCKET/PREFIX",
    help="s3:// prefix for the clips that annotators see; their links are valid for 7 days.",
)
@label_studio_options
@ledger_option
@trusted_option
@json_option
def push(*, as_json: bool, **options: Any) -> None:
    """Create the tasks of BENCH in Label Studio, in a separate order for each annotator.

    Clips are copied once to a constant frame rate starting at 0, so that the annotated frame is the
    frame shown. Run it again after a crash or with new clips in BENCH: existing tasks stay, and new
    clips form a new batch. For screening, BENCH is the folder of `unreel curate`, or its queue.

    If a screen or a task was changed in Label Studio, answers since then are quarantined, and the
    screen or task is restored.

    Exits with status 1 if clips cannot be shown, or a project was changed.
    """
    LazyImport("unreel.cli.annotate.push_job:push_campaign", "annotate").load()(
        options, as_json=as_json
    )
