"""`unreel arena site`: a season as static pages."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.completing import complete_paths
from unreel.cli.output import json_option
from unreel.cli.shared_options import media_option
from unreel.core.registry import Lazy


@click.command()
@click.argument("seasons", nargs=-1, required=True, shell_complete=complete_paths)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("site"),
    show_default=True,
    help="Folder of the pages.",
)
@media_option("licensed", "link", "copy", "none")
@click.option(
    "--hub",
    metavar="OWNER/NAME",
    help="Data set at Hugging Face: write the files by which it lists results.",
)
@click.option("--url", default="", help="Where the pages will lie, as the source of those results.")
@click.option("--resamples", type=click.IntRange(100), help="How often scenes are drawn again.")
@click.option(
    "--reveal", is_flag=True, help="The season is over: tell of single clips, hidden ones too."
)
@json_option
def site(*, as_json: bool, **given: Any) -> None:
    """Show SEASONS as static pages: both boards, who catches whom, and a page for each entrant. Nobody is asked.

    SEASONS are TOML files, or the folders in which they were played, the latest last: it is shown whole,
    the earlier ones in its history.
    """
    Lazy("unreel.cli.arena_site_job:write_site", "report").load()(given, as_json=as_json)
