"""`unreel annotate push`: create annotation tasks for the clips of a benchmark."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.annotate import label_studio_options, ledger_option
from unreel.cli.output import json_option, trusted_option
from unreel.core.registry import LazyImport


@click.command()
@click.argument("bench", metavar="BENCH", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--campaign", required=True, metavar="NAME", help="Name of the new or existing campaign."
)
@click.option(
    "--interface",
    required=True,
    metavar="WORD",
    help="Annotation interface: screening, trace, realism, preference, reality or pass-fail.",
)
@click.option(
    "--question",
    default="",
    help="Question that annotators answer with pass or fail. Only for --interface pass-fail.",
)
@click.option(
    "--annotators",
    required=True,
    metavar="LIST|FILE",
    help="Annotators as NAME=E-MAIL, separated by commas, or a file with one annotator per line.",
)
@click.option(
    "--overlap",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="Number of annotators who judge each task.",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    help="Random seed for task order, left-right order of pairs, and selection of tasks for --gold and --prefill.",
)
@click.option(
    "--gold",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Number of tasks with a known answer that each annotator receives, to measure accuracy.",
)
@click.option(
    "--prefill",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSONL file with annotations that annotators see in advance, in a random half of the tasks.",
)
@click.option(
    "--pairs",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Table of clip pairs from `unreel annotate pairs`. Only for --interface preference.  [default: all pairs]",
)
@click.option(
    "--guidelines",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="HTML file with instructions for annotators.  [default: the instructions of the interface]",
)
@click.option(
    "--copies",
    "media",
    metavar="s3://BUCKET/PREFIX",
    help="s3:// prefix for the clip copies that annotators see. Their links are valid for 7 days.  [default: a folder in --state]",
)
@label_studio_options
@ledger_option
@trusted_option
@json_option
def push(*, as_json: bool, **options: Any) -> None:
    """Create annotation tasks for the clips of BENCH in Label Studio, in a different order for each annotator.

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
