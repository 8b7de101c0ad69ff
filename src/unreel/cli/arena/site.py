"""`unreel arena site`: write seasons as static pages."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.completion import list_path_completions
from unreel.cli.options import media_option
from unreel.cli.output import json_option
from unreel.core.registry import LazyImport


@click.command()
@click.argument("seasons", nargs=-1, required=True, shell_complete=list_path_completions)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("site"),
    show_default=True,
    help="Output folder for the pages.",
)
@media_option("licensed", "link", "copy", "none")
@click.option(
    "--hub",
    metavar="OWNER/NAME",
    help="Name of a data set on the Hugging Face Hub. Files that list the results on its page are also written, but not uploaded.",
)
@click.option(
    "--url",
    default="",
    help="Public URL of the pages, written as the source of the results into the files of --hub.",
)
@click.option(
    "--resamples",
    type=click.IntRange(100),
    help="Number of bootstrap resamples of the scenes, for the confidence intervals.  [default: 2000]",
)
@click.option(
    "--reveal",
    is_flag=True,
    help="Show the result of every clip, including hidden clips. Use it only after the end of the season.",
)
@json_option
def site(*, as_json: bool, **options: Any) -> None:
    """Write static web pages about SEASONS: both leaderboards, the detection matrix, and a page per entrant.

    Sends nothing. SEASONS are TOML files or folders of seasons, the latest last. The latest is shown
    completely, the earlier ones in its history.
    """
    LazyImport("unreel.cli.arena.site_job:write_arena_site", "report").load()(
        options, as_json=as_json
    )
