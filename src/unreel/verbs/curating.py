"""`curate`: raw video to a frozen benchmark, from Python."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from unreel.core.names import plain_name
from unreel.core.settings import read_settings
from unreel.curate import job
from unreel.curate.job import Curation
from unreel.curate.recipe import check_recipe, read_recipe
from unreel.curate.state import State
from unreel.curate.step import Workbench
from unreel.engine.committer import Progress
from unreel.engine.whereabouts import find_place, local_folder, open_access
from unreel.media.access import require_protection


def curate(  # noqa: PLR0913  what `unreel curate run` takes
    recipe: str | Path | Mapping[str, Any],
    *,
    out: str | Path | None = None,
    until: str | None = None,
    engine: str = "local",
    accept_leak: bool = False,
    trusted: bool = False,
    on_progress: Callable[[str, Progress], None] = lambda _step, _progress: None,
) -> State:
    """Take the steps of `recipe`, from raw files to the frozen benchmark; what is done stays done.

    Args:
        recipe: a TOML file, or its sections as a mapping; relative paths start from the file, or
            from the working folder.
        out: working folder or `s3://bucket/prefix`; below `curations/` by default.
        until: the last step to take.
        engine: `local` or `ray`.
        accept_leak: freeze although the labels can be told without looking.
        trusted: open clips in this process; by default a confined child does.
        on_progress: told a step and how far it is, from another thread.

    Raises:
        InvalidSettingError: The recipe asks for something that nobody can do.
        UnreadableSourceError: A source cannot be read.
    """
    if isinstance(recipe, Mapping):
        resolved, root = check_recipe(recipe), Path.cwd()
    else:
        resolved, root = read_recipe(Path(recipe)), Path(recipe).absolute().parent
    settings = read_settings()
    require_protection(settings, trusted=trusted)
    access = open_access(settings, trusted=trusted)
    folder = str(out or Path("curations") / plain_name(resolved.name))
    place = find_place(folder if "://" in folder else str(Path(folder).absolute()), access.storage)
    bench = Workbench(
        place=place,
        access=access,
        ledgers=local_folder(place, settings) / "ledgers",
        engine=engine,
        on_progress=on_progress,
    )
    curation = Curation(recipe=resolved, root=root, bench=bench, accept_leak=accept_leak)
    return job.curate(curation, until=until)
