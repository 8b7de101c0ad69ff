"""`unreel annotate`: human judgements through Label Studio."""

from collections.abc import Mapping
from typing import Final

import click

from unreel.cli.lazy_group import LazyCommand, LazyCommandGroup
from unreel.core.registry import LazyImport

_WORDS: Final[Mapping[str, LazyCommand]] = {
    "up": LazyCommand(LazyImport("unreel.cli.annotate.up:up"), "Start Label Studio."),
    "push": LazyCommand(
        LazyImport("unreel.cli.annotate.push:push"), "Create annotation tasks in Label Studio."
    ),
    "links": LazyCommand(
        LazyImport("unreel.cli.annotate.pull:links"), "Print the link of each annotator."
    ),
    "pull": LazyCommand(
        LazyImport("unreel.cli.annotate.pull:pull"), "Fetch the annotators' answers."
    ),
    "status": LazyCommand(
        LazyImport("unreel.cli.annotate.pull:status"), "Print progress and speed of each annotator."
    ),
    "report": LazyCommand(
        LazyImport("unreel.cli.annotate.report:report"),
        "Write a page about a campaign, with disagreements first.",
    ),
    "consensus": LazyCommand(
        LazyImport("unreel.cli.annotate.consensus:consensus"),
        "Print the consensus and the disagreements of each task.",
    ),
    "review": LazyCommand(
        LazyImport("unreel.cli.annotate.consensus:review"),
        "Accept the consensus of a task, or send it back.",
    ),
    "quality": LazyCommand(
        LazyImport("unreel.cli.annotate.quality:quality"),
        "Print the quality of each annotator, with alarms.",
    ),
    "exclude": LazyCommand(
        LazyImport("unreel.cli.annotate.exclude:exclude"),
        "Exclude an annotator's judgements; they stay in the ledger.",
    ),
    "include": LazyCommand(
        LazyImport("unreel.cli.annotate.exclude:include"),
        "Include an annotator's judgements again.",
    ),
    "polish": LazyCommand(
        LazyImport("unreel.cli.annotate.polish:polish"),
        "Merge the annotators' texts with a language model.",
    ),
    "confirm": LazyCommand(
        LazyImport("unreel.cli.annotate.polish:confirm"),
        "Confirm that a polished text keeps its meaning.",
    ),
    "publish": LazyCommand(
        LazyImport("unreel.cli.annotate.publish:publish"),
        "Write the consensus as a benchmark.",
    ),
    "pairs": LazyCommand(
        LazyImport("unreel.cli.annotate.pairs:pairs"), "Choose pairs of clips to compare."
    ),
    "rank": LazyCommand(LazyImport("unreel.cli.annotate.pairs:rank"), "Rank clips by preferences."),
    "convert": LazyCommand(
        LazyImport("unreel.cli.annotate.convert:convert"),
        "Convert annotations between Labelbox, CVAT and Label Studio.",
    ),
}


@click.command(cls=LazyCommandGroup, words=_WORDS)
def annotate() -> None:
    """Annotate clips with people in Label Studio, and compute their consensus.

    The ledger stores every judgement unchanged; consensus, reviews and exclusions are computed from it.
    """
