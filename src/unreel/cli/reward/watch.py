"""`unreel reward watch`: guards over the log of a reward service."""

import sys
from pathlib import Path

import click

from unreel.cli.output import json_option
from unreel.core.registry import LazyImport


@click.command()
@click.argument("log", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Output folder of the page. Without it no page is written.",
)
@click.option(
    "--last",
    type=click.IntRange(min=10),
    metavar="STEPS",
    help="Number of steps at the end of the log to read; the first of them are the reference. Default: all.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Probability of any false alarm in a run.",
)
@json_option
def watch(*, log: Path, out: Path | None, last: int | None, alpha: float, as_json: bool) -> None:
    """Search LOG, written by `unreel reward serve --log`, for signs of reward hacking.

    Exits with status 1 if a guard raises an alarm.
    """
    print_guards = LazyImport("unreel.cli.reward.watch_job:print_guards", "reward").load()
    sys.exit(print_guards(log, out=out, last=last, alpha=alpha, as_json=as_json))
