"""Implementation of `unreel arena site`, imported when it runs."""

from collections.abc import Mapping
from typing import Any

from unreel.arena.season.folder import find_season_folder
from unreel.cli.output import echo, print_json, print_message
from unreel.core.output_files import OutputDirectory
from unreel.core.settings import read_environment_settings
from unreel.engine.storage_access import build_clip_access_settings
from unreel.report.clips.clip_files import ReportMediaFolder
from unreel.report.season.exports import HuggingFaceListing
from unreel.report.season.leaderboards import read_season_leaderboards
from unreel.report.season.read_season import (
    SeasonReadOptions,
    build_clip_publisher,
    read_season_page_data,
)
from unreel.report.season.site import write_season_site
from unreel.stats.resampling import RESAMPLES


def write_arena_site(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Write the static pages of the seasons, and print their path."""
    listing = (
        HuggingFaceListing(dataset=options["hub"], url=options["url"]) if options["hub"] else None
    )
    *earlier, latest = [find_season_folder(season) for season in options["seasons"]]
    showing = options["media"]
    media = ReportMediaFolder(
        out=OutputDirectory(options["out"], published=True),
        media="copy" if showing == "licensed" else showing,
        access=build_clip_access_settings(read_environment_settings()),
    )
    reading = SeasonReadOptions(
        resamples=options["resamples"] or RESAMPLES,
        reveals=options["reveal"],
        show=None if showing == "none" else build_clip_publisher(media, showing),
    )
    seasons = [read_season_leaderboards(folder, resamples=reading.resamples) for folder in earlier]
    seasons.append(read_season_page_data(latest, reading))
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
