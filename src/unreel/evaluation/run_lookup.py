"""Finding and opening of runs: a new run, one at a location, or all below a folder or prefix."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from obstore.exceptions import BaseError

from unreel.benchmarks.tables import TABLE_SUFFIXES
from unreel.core.errors import UnreadableSourceError
from unreel.core.safe_names import make_safe_file_name
from unreel.core.settings import EnvironmentSettings, read_storage_options
from unreel.engine.location import StorageLocation, get_local_state_folder, resolve_location
from unreel.engine.storage_access import build_clip_access_settings
from unreel.evaluation.recipe import EvalRecipe
from unreel.evaluation.run_job import EvalRun, open_run
from unreel.evaluation.stored_recipe import RECIPE_FILE, find_run_recipe

_TABLE = ".lance"
_TABLES = ("clips.lance", "answers.lance")
"""Tables that identify a run; a frozen benchmark also has a recipe, but neither of these tables."""


def build_eval_run(
    recipe: EvalRecipe,
    out: str | Path | None,
    settings: EnvironmentSettings,
    *,
    trusted: bool,
    outside: bool = False,
    accept_changed: bool = False,
) -> EvalRun:
    """Build the run of `recipe` at the directory or prefix `out`; by default at a name below `runs/`."""
    access = build_clip_access_settings(settings, trusted=trusted, outside=outside)
    location = resolve_location(
        str(out or find_run_location(recipe, "runs", settings)), access.storage
    )
    return EvalRun(
        place=location,
        recipe=recipe,
        access=access,
        ledgers=get_local_state_folder(location, settings),
        accept_changed=accept_changed,
    )


def build_run_name(recipe: EvalRecipe, *, keep_ending: bool = False) -> str:
    """Return the default name of a run, from its model (without the server), protocol and benchmark."""
    model = recipe.reviewer.model.partition("@")[0]
    benchmark = os.path.abspath(recipe.benchmark)  # noqa: PTH100  `.` has a name, a link keeps its own
    name = Path(benchmark).name
    if not keep_ending and name.lower().endswith(TABLE_SUFFIXES):
        name = Path(name).stem
    return "-".join(map(make_safe_file_name, (Path(model).name, recipe.protocol, name)))


def find_run_location(recipe: EvalRecipe, parent: str, settings: EnvironmentSettings) -> str:
    """Return the run's location below `parent`, by its name or the earlier one with a table's suffix."""
    name, earlier = build_run_name(recipe), build_run_name(recipe, keep_ending=True)
    if earlier != name:
        uri = f"{parent}/{earlier}"
        if find_run_recipe(resolve_location(uri, read_storage_options(settings))) is not None:
            return uri
    return f"{parent}/{name}"


def open_named_run(
    text: str,
    settings: EnvironmentSettings,
    *,
    moved_to: Path | None = None,
    outside: bool = False,
    accept_changed: bool = False,
) -> EvalRun:
    """Open the run that `unreel eval --out` wrote to the folder or prefix `text`."""
    location = resolve_location(text, read_storage_options(settings))
    return open_run(
        location,
        build_clip_access_settings(settings, outside=outside),
        ledgers=get_local_state_folder(location, settings),
        moved_to=moved_to,
        accept_changed=accept_changed,
    )


def resolve_run_names(texts: Iterable[str], settings: EnvironmentSettings) -> list[str]:
    """Return the locations of the runs that `texts` name: each is one run, or a folder of runs."""
    storage = read_storage_options(settings)
    return [
        name
        for text in texts
        for name in (
            [text]
            if find_run_recipe(resolve_location(text, storage)) is not None
            else [*find_runs(text, settings)] or [text]
        )
    ]


def find_runs(text: str, settings: EnvironmentSettings) -> Iterator[str]:
    """Yield the locations of the runs at or below the folder or prefix `text`, sorted."""
    location = resolve_location(text, read_storage_options(settings))
    if location.is_local:
        for path in sorted(location.path.glob(f"**/{RECIPE_FILE}")):
            if any((path.parent / table).is_dir() for table in _TABLES):
                yield str(path.parent)
        return
    try:
        yield from (location.uri + below for below in _iter_run_paths(location, ""))
    except BaseError as error:
        raise UnreadableSourceError(
            location.uri,
            f"cannot list it: {error}",
            "Check its address, bucket and keys, or try `unreel doctor --store`",
        ) from error


def _iter_run_paths(location: StorageLocation, prefix: str) -> Iterator[str]:
    listed = location.objects().list_with_delimiter(prefix or None)
    names = {entry["path"].rpartition("/")[2] for entry in listed["objects"]}
    folders = [folder.rstrip("/") for folder in sorted(listed["common_prefixes"])]
    if RECIPE_FILE in names:
        if {folder.rpartition("/")[2] for folder in folders} & {*_TABLES}:
            yield f"/{prefix}".rstrip("/")
        return
    for folder in folders:
        if not folder.endswith(_TABLE):
            yield from _iter_run_paths(location, folder)
