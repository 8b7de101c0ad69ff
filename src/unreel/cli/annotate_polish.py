"""`unreel annotate polish` and `confirm`: rationales in one form, by a model and then by a person."""

from typing import Any

import click

from unreel.cli.annotate_options import ledger_option
from unreel.cli.output import json_option
from unreel.core.registry import Lazy


@click.command()
@click.argument("campaign")
@click.option("--model", help="Who polishes, `provider/name@URL`.  [default: nobody: list texts]")
@click.option("--again", is_flag=True, help="Ask about texts too that are there already.")
@click.option("--quorum", type=click.IntRange(1), default=2, show_default=True, help="As publish.")
@click.option(
    "--min-overlap", type=click.IntRange(1), default=2, show_default=True, help="As publish."
)
@ledger_option
@json_option
def polish(*, as_json: bool, **given: Any) -> None:
    """Have a language model merge the rationales of CAMPAIGN, with VideoRealBench's own prompt.

    What people wrote stays. A check flags texts that may mean something else; a text counts once a person
    confirmed it. What was polished already is not asked again.

    Ends with status 1 where the model gave no text.
    """
    Lazy("unreel.cli.annotate_polish_job:polish_campaign", extra="annotate").load()(
        given, as_json=as_json
    )


@click.command()
@click.argument("campaign")
@click.argument("task")
@click.option("--by", required=True, metavar="NAME", help="Who read it.")
@click.option("--reject", is_flag=True, help="It says something else: what people wrote stands.")
@ledger_option
@json_option
def confirm(*, as_json: bool, **given: Any) -> None:
    """Say that the polished text of TASK, its id or its clip's name, means what people wrote."""
    Lazy("unreel.cli.annotate_polish_job:confirm_text", extra="annotate").load()(
        given, as_json=as_json
    )
