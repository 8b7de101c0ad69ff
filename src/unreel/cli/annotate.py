"""`unreel annotate`: people's judgements through Label Studio."""

from collections.abc import Mapping
from typing import Final

import click

from unreel.cli.late import LateGroup, Word
from unreel.core.registry import Lazy

_WORDS: Final[Mapping[str, Word]] = {
    "up": Word(Lazy("unreel.cli.annotate_up:up"), "Start Label Studio, for as long as it runs."),
    "push": Word(Lazy("unreel.cli.annotate_push:push"), "Bring clips before annotators."),
    "links": Word(Lazy("unreel.cli.annotate_pull:links"), "Print each annotator's own link."),
    "pull": Word(Lazy("unreel.cli.annotate_pull:pull"), "Fetch what annotators saved."),
    "status": Word(
        Lazy("unreel.cli.annotate_pull:status"), "Tell how far each annotator is, and how fast."
    ),
    "report": Word(
        Lazy("unreel.cli.annotate_report:report"),
        "Show a campaign on one page, disagreements first.",
    ),
    "consensus": Word(
        Lazy("unreel.cli.annotate_consensus:consensus"),
        "Tell what people settled on, and who said otherwise.",
    ),
    "review": Word(
        Lazy("unreel.cli.annotate_consensus:review"),
        "Accept what would stand for a task, or send it back.",
    ),
    "quality": Word(
        Lazy("unreel.cli.annotate_quality:quality"),
        "Tell who answers well, has changed, or does not look.",
    ),
    "exclude": Word(
        Lazy("unreel.cli.annotate_people:exclude"),
        "Leave an annotator's judgements out; they stay in the ledger.",
    ),
    "include": Word(
        Lazy("unreel.cli.annotate_people:include"), "Let an annotator's judgements count again."
    ),
    "polish": Word(
        Lazy("unreel.cli.annotate_polish:polish"), "Have a model merge what people wrote."
    ),
    "confirm": Word(
        Lazy("unreel.cli.annotate_polish:confirm"), "Say that a polished text means the same."
    ),
    "publish": Word(
        Lazy("unreel.cli.annotate_publish:publish"),
        "Write what people settled on as a benchmark.",
    ),
    "pairs": Word(
        Lazy("unreel.cli.annotate_pairs:pairs"), "Choose the pairs of clips that people compare."
    ),
    "rank": Word(
        Lazy("unreel.cli.annotate_pairs:rank"), "Put clips in order, from what people preferred."
    ),
    "convert": Word(
        Lazy("unreel.cli.annotate_convert:convert"),
        "Turn marked videos of Labelbox, CVAT or Label Studio into another's.",
    ),
}


@click.command(cls=LateGroup, words=_WORDS)
def annotate() -> None:
    """Ask people about clips through Label Studio, and settle what they say.

    The ledger keeps every judgement as it was given; consensus, review and exclusion are worked out from it.
    """
