"""`unreel seen`: an index of clips that were seen before, and the search for copies and parts of them."""

import sys

import click

from unreel.api import seen as api
from unreel.cli.options import settings_options
from unreel.cli.output import echo, json_option, print_json, print_message
from unreel.cli.progress import ProgressMeter
from unreel.core.failure import Failure
from unreel.engine.progress import Progress


@click.group()
def seen() -> None:
    """Find out whether a clip, or a part of it, was seen before.

    The index has fingerprints of frames, and no pictures. `unreel review` searches it as well.
    """


@seen.command()
@settings_options(api.SeenAddSettings)
@json_option
def add(settings: api.SeenAddSettings, *, as_json: bool) -> None:
    """Add CLIPS to the index: video files, folders of videos, or packs (NAME.jsonl.gz) of others.

    A second call reads only what is new. Exits with status 1 if a file cannot be read.
    """
    results = []
    with ProgressMeter() as meter:

        def expect(n_files: int) -> None:
            meter.expect("clips", n_files)

        for done, result in enumerate(api.add_seen_clips(settings, expect), start=1):
            results.append(result)
            meter.step("clips", Progress(done=done))
    failed = [result for result in results if result.failure is not None]
    if as_json:
        print_json(results)
    print_message(*(f"{result.file}: {result.failure}" for result in failed))
    print_message(*(f"{result.file}: {result.note}" for result in results if result.note))
    n_added, n_known = (sum(getattr(r, name) for r in results) for name in ("n_added", "n_known"))
    print_message(f"{n_added} clips added to {settings.file}, {n_known} were there already")
    sys.exit(1 if failed else 0)


@seen.command()
@settings_options(api.SeenFindSettings)
@json_option
def find(settings: api.SeenFindSettings, *, as_json: bool) -> None:
    """Find the clips of the index that CLIPS repeat: the same file, a copy, a part, or mirrored.

    Exits with status 1 if a clip cannot be read.
    """
    rows: list[dict[str, object]] = []
    n_failed = 0
    for file, matches in api.find_seen_clips(settings):
        if isinstance(matches, Failure):
            n_failed += 1
            print_message(f"{file}: {matches}")
            rows.append({"file": str(file), "failure": matches})
            continue
        rows.append({"file": str(file), "matches": matches})
        if not as_json:
            for match in matches:
                echo(f"{file}: {match}")
            if not matches:
                echo(f"{file}: not found in the index")
    if as_json:
        print_json(rows)
    sys.exit(1 if n_failed else 0)


@seen.command()
@settings_options(api.SeenExportSettings)
def export(settings: api.SeenExportSettings) -> None:
    """Write the fingerprints of the index to PACK, without pictures and folders, for another newsroom."""
    n_clips = api.export_seen_pack(settings)
    print_message(f"{n_clips} clips in {settings.pack}")
