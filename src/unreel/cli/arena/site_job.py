"""Implementation of `unreel arena site`, imported when it runs."""

from collections.abc import Mapping
from typing import Any

from unreel.arena.season.folder import find_folder
from unreel.cli.output import echo, print_json, print_message
from unreel.core.output_files import OutputDirectory
from unreel.core.settings import read_settings
from unreel.engine.resolve_location import open_access
from unreel.report.clips.media_folder import MediaFolder
from unreel.report.season.boards import read_boards
from unreel.report.season.hub import HubListing
from unreel.report.season.read_season import SeasonReadOptions, read_season_view
from unreel.report.season.shown_clips import show_in
from unreel.report.season.site import write_season_site
from unreel.stats.resampling import RESAMPLES


def write_site(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Read the seasons, write their pages, and say where they are."""
    listing = HubListing(dataset=options["hub"], url=options["url"]) if options["hub"] else None
    *earlier, latest = [find_folder(season) for season in options["seasons"]]
    showing = options["media"]
    media = MediaFolder(
        out=OutputDirectory(options["out"], published=True),
        media="copy" if showing == "licensed" else showing,
        access=open_access(read_settings()),
    )
    reading = SeasonReadOptions(
        resamples=options["resamples"] or RESAMPLES,
        reveals=options["reveal"],
        show=None if showing == "none" else show_in(media, showing),
    )
    seasons = [read_boards(folder, resamples=reading.resamples) for folder in earlier]
    seasons.append(read_season_view(latest, reading))
    written = write_season_site(seasons, options["out"], listing=listing)
    if as_json:
        print_json(written)
        return
    print_message(
        f"season {seasons[-1].name}: {written.n_reviewers} reviewers and baselines, {written.n_creators} creators and "
        f"controls, {len(media.placed)} clips to watch"
    )
    if listing is None:
        print_message(
            "  name a data set with --hub OWNER/NAME to get the files by which Hugging Face lists results"
        )
    echo(written.page)
