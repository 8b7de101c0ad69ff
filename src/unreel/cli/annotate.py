"""`unreel annotate`: people's judgements through Label Studio."""

from collections.abc import Mapping
from typing import Final

import click

from unreel.cli.late import LateGroup, Word
from unreel.core.registry import Lazy

_WORDS: Final[Mapping[str, Word]] = {
    "up": Word(Lazy("unreel.cli.annotate_up:up"), "Start Label Studio."),
    "push": Word(Lazy("unreel.cli.annotate_push:push"), "Create annotation tasks in Label Studio."),
    "links": Word(Lazy("unreel.cli.annotate_pull:links"), "Print the link of each annotator."),
    "pull": Word(Lazy("unreel.cli.annotate_pull:pull"), "Fetch the annotators' answers."),
    "status": Word(
        Lazy("unreel.cli.annotate_pull:status"), "Print progress and speed of each annotator."
    ),
    "report": Word(
        Lazy("unreel.cli.annotate_report:report"),
        "Write a campaign as one page, disagreements first.",
    ),
    "consensus": Word(
        Lazy("unreel.cli.annotate_consensus:consensus"),
        "Print the consensus of each task, and who disagrees.",
    ),
    "review": Word(
        Lazy("unreel.cli.annotate_consensus:review"),
        "Accept the consensus of a task, or send it back.",
    ),
    "quality": Word(
        Lazy("unreel.cli.annotate_quality:quality"),
        "Print the quality of each annotator, with alarms.",
    ),
    "exclude": Word(
        Lazy("unreel.cli.annotate_people:exclude"),
        "Exclude an annotator's judgements; they stay in the ledger.",
    ),
    "include": Word(
        Lazy("unreel.cli.annotate_people:include"), "Include an annotator's judgements again."
    ),
    "polish": Word(
        Lazy("unreel.cli.annotate_polish:polish"), "Merge rationales with a language model."
    ),
    "confirm": Word(
        Lazy("unreel.cli.annotate_polish:confirm"),
        "Confirm that a polished text keeps its meaning.",
    ),
    "publish": Word(
        Lazy("unreel.cli.annotate_publish:publish"),
        "Write the consensus as a benchmark.",
    ),
    "pairs": Word(Lazy("unreel.cli.annotate_pairs:pairs"), "Choose pairs of clips to compare."),
    "rank": Word(Lazy("unreel.cli.annotate_pairs:rank"), "Rank clips by preferences."),
    "convert": Word(
        Lazy("unreel.cli.annotate_convert:convert"),
        "Convert annotations between Labelbox, CVAT and Label Studio.",
    ),
}


@click.command(cls=LateGroup, words=_WORDS)
def annotate() -> None:
    """Annotate clips with people in Label Studio, and compute a consensus.

    The ledger stores every judgement unchanged; consensus, reviews and exclusions are computed from it.
    """
