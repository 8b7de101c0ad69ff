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
    help="Output folder of the pages.",
)
@media_option("licensed", "link", "copy", "none")
@click.option(
    "--hub",
    metavar="OWNER/NAME",
    help="Hugging Face data set, as OWNER/NAME: also write the files that list the results on its page.",
)
@click.option(
    "--url", default="", help="Public URL of the site, recorded as the source of the results."
)
@click.option(
    "--resamples", type=click.IntRange(100), help="Number of bootstrap resamples (over scenes)."
)
@click.option(
    "--reveal",
    is_flag=True,
    help="Publish the results of each clip, including hidden clips. Only for finished seasons.",
)
@json_option
def site(*, as_json: bool, **options: Any) -> None:
    """Write SEASONS as static pages: both leaderboards, the detection matrix, and a page per entrant.

    Sends nothing. SEASONS are TOML files or folders of seasons, the latest last. The latest is shown
    completely, the earlier ones in its history.
    """
    LazyImport("unreel.cli.arena.site_job:write_arena_site", "report").load()(
        options, as_json=as_json
    )
