"""Implementation of `run_season`; it is imported only when `run_season` is called."""

from collections.abc import Collection
from pathlib import Path

from unreel.arena.run.job import SeasonJob
from unreel.arena.season.folder import resolve_season_folder
from unreel.arena.season.recipe import read_season
from unreel.core.errors import InvalidSettingError
from unreel.core.output_files import OutputDirectory
from unreel.core.settings import read_environment_settings
from unreel.engine.run import ALL_FAILURES
from unreel.engine.storage_access import build_clip_access_settings


def open_season_job(
    season: str | Path,
    *,
    out: str | Path | None,
    only: Collection[str],
    allow_outside: bool,
    engine: str = "local",
    retry_failed: bool = False,
    trusted: bool = False,
) -> SeasonJob:
    """Read the season, and return the job that runs it.

    Raises:
        InvalidSettingError: The folder of the season has submitted entries, which are not read.
    """
    read = read_season(Path(season))
    folder, settings = resolve_season_folder(read, out), read_environment_settings()
    if OutputDirectory(folder.path).files("entries"):
        raise InvalidSettingError(
            "entries",
            f"{folder.path / 'entries'} has submitted entries",
            "Write their creators and reviewers into the season file, and move the folder away",
        )
    return SeasonJob(
        season=read,
        folder=folder,
        access=build_clip_access_settings(settings, trusted=trusted),
        outside=allow_outside,
        engine=engine,
        retry_failed=ALL_FAILURES if retry_failed else frozenset(),
        only=frozenset(only),
    )
