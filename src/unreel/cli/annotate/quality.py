"""`unreel annotate quality`, `exclude` and `include`: quality of annotators, and whose judgements count."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from unreel.cli.annotate import ledger_option
from unreel.cli.output import json_option, print_json, print_message, table_format_option
from unreel.core.registry import LazyImport


@click.command()
@click.argument("campaign")
@click.option(
    "--passing",
    type=click.FloatRange(0, 1),
    default=0.8,
    show_default=True,
    help="Minimum fraction of right answers, on tasks with a known answer, for an annotator to count as qualified.",
)
@click.option(
    "--seed", default=0, show_default=True, help="Random seed for the confidence intervals."
)
@ledger_option
@table_format_option
@json_option
def quality(*, as_json: bool, **options: Any) -> None:
    """Print the quality of each annotator of CAMPAIGN, with confidence intervals.

    Right: accuracy on known clips. Informed: dependence of the answers on the clip, measured by all other
    answers. Same answer: agreement with others on the same task. Alarms report annotators whose answers
    changed, who answer without looking, or whose times are unusual. No annotator is excluded
    automatically: use `exclude`.
    """
    LazyImport("unreel.cli.annotate.quality_job:print_annotator_quality", "annotate").load()(
        options, as_json=as_json
    )


F = TypeVar("F", bound=Callable[..., Any])


def _add_exclusion_options(command: F) -> F:
    """Add the arguments and options of `exclude` and `include` to a command."""
    command = click.option(
        "--by",
        default="lead",
        show_default=True,
        metavar="NAME",
        help="Name of the person who makes this decision.",
    )(json_option(ledger_option(command)))
    command = click.option(
        "--why",
        required=True,
        metavar="TEXT",
        help="Reason for the decision, stored in the ledger.",
    )(command)
    return click.argument("campaign")(click.argument("annotator")(command))


@click.command()
@_add_exclusion_options
def exclude(*, as_json: bool, **options: Any) -> None:
    """Exclude the judgements of ANNOTATOR from CAMPAIGN. They stay in the ledger.

    Consensus, agreement and later publications are computed without them.
    """
    _store_exclusion_decision(options, counts=False, as_json=as_json)


@click.command()
@_add_exclusion_options
def include(*, as_json: bool, **options: Any) -> None:
    """Include the judgements of ANNOTATOR in CAMPAIGN again."""
    _store_exclusion_decision(options, counts=True, as_json=as_json)


def _store_exclusion_decision(options: dict[str, Any], *, counts: bool, as_json: bool) -> None:
    job = LazyImport("unreel.cli.annotate.quality_job:store_annotator_exclusion", "annotate").load()
    decided = job(options, counts=counts)
    if as_json:
        print_json(decided)
        return
    state = "counts" if decided.counts else "does not count"
    print_message(f"{decided.annotator} {state} in {decided.campaign} from now on")
    print_message(f"{decided.n_now} judgements count, {decided.n_before} did before")
    if not counts:
        print_message(
            f"next: unreel annotate include {decided.campaign} {decided.annotator} reverses it"
        )
