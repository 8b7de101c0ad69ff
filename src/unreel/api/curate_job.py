"""Implementation of `curate`, imported when it runs: the steps, and their tables."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from unreel.api.curate import Curated
from unreel.core.settings import read_settings
from unreel.curation.curation_run import CurationRun, open_bench
from unreel.curation.curation_run import curate as curate_bench
from unreel.curation.recipe import check_recipe, read_recipe
from unreel.engine.progress import JobCallbacks, Progress
from unreel.engine.resolve_location import open_access
from unreel.engine.run import ALL_FAILURES
from unreel.media.access import require_protection


def take_steps(  # noqa: PLR0913  what `curate` takes
    recipe: str | Path | Mapping[str, Any],
    *,
    out: str | Path | None,
    until: str | None,
    engine: str,
    retry_failed: bool,
    accept_leak: bool,
    trusted: bool,
    on_progress: Callable[[str, Progress], None] | None,
) -> Curated:
    """Run the steps of `recipe` up to `until`, and return their results."""
    if isinstance(recipe, Mapping):
        resolved, root = check_recipe(recipe), Path.cwd()
    else:
        resolved, root = read_recipe(Path(recipe)), Path(recipe).absolute().parent
    settings = read_settings()
    require_protection(settings, trusted=trusted)
    bench = open_bench(resolved, out, open_access(settings, trusted=trusted), engine=engine)
    if retry_failed:
        bench = replace(bench, retry_failed=ALL_FAILURES)
    if on_progress is not None:
        bench = replace(bench, callbacks=JobCallbacks(on_step=on_progress))
    curation = CurationRun(recipe=resolved, root=root, bench=bench, accept_leak=accept_leak)
    state = curate_bench(curation, until=until)
    return Curated(
        place=bench.place.uri,
        steps=state.steps,
        n_clips=len(state.pieces),
        left_out=state.reasons,
        n_failed=state.n_failed,
        leaks=state.leaks,
        benchmark=None if state.frozen is None else state.frozen.place,
    )
