"""`unreel annotate quality`: how well each annotator answers."""

from typing import Any

import click

from unreel.cli.annotate_options import ledger_option
from unreel.cli.output import form_option, json_option
from unreel.core.registry import Lazy


@click.command()
@click.argument("campaign")
@click.option(
    "--passing",
    type=click.FloatRange(0, 1),
    default=0.8,
    show_default=True,
    help="Share of known clips that qualifies.",
)
@click.option("--seed", default=0, show_default=True, help="Of intervals.")
@ledger_option
@form_option
@json_option
def quality(*, as_json: bool, **given: Any) -> None:
    """Tell how well each annotator of CAMPAIGN answers, with intervals.

    Right: share of right answers to known clips. Informed: how much answers depend on the clip, by all
    others' answers. Same answer: with others on the same task. An alarm tells who has changed, who does
    not look, and times out of the ordinary; nobody is left out for it: that is `exclude`.
    """
    Lazy("unreel.cli.annotate_quality_job:tell_quality", "annotate").load()(given, as_json=as_json)
