"""Implementation of `curate`; it is imported only when `curate` is called."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from unreel.api.curate import CurationResult
from unreel.core.settings import read_environment_settings
from unreel.curation.curation_run import CurationRecipeJob, open_curation_context
from unreel.curation.curation_run import run_curation as curate_bench
from unreel.curation.recipe import parse_curation_recipe, read_curation_recipe
from unreel.engine.progress import JobCallbacks, Progress
from unreel.engine.run import ALL_FAILURES
from unreel.engine.storage_access import build_clip_access_settings
from unreel.media.access import require_sandbox_protection


def run_curation_steps(  # noqa: PLR0913  what `curate` takes
    recipe: str | Path | Mapping[str, Any],
    *,
    out: str | Path | None,
    until: str | None,
    engine: str,
    retry_failed: bool,
    accept_leak: bool,
    trusted: bool,
    on_progress: Callable[[str, Progress], None] | None,
) -> CurationResult:
    """Run the steps of `recipe` up to `until`, and return their results."""
    if isinstance(recipe, Mapping):
        resolved, root = parse_curation_recipe(recipe), Path.cwd()
    else:
        resolved, root = read_curation_recipe(Path(recipe)), Path(recipe).absolute().parent
    settings = read_environment_settings()
    require_sandbox_protection(settings, trusted=trusted)
    bench = open_curation_context(
        resolved, out, build_clip_access_settings(settings, trusted=trusted), engine=engine
    )
    if retry_failed:
        bench = replace(bench, retry_failed=ALL_FAILURES)
    if on_progress is not None:
        bench = replace(bench, callbacks=JobCallbacks(on_step=on_progress))
    curation = CurationRecipeJob(recipe=resolved, root=root, bench=bench, accept_leak=accept_leak)
    state = curate_bench(curation, until=until)
    return CurationResult(
        place=bench.place.uri,
        steps=state.steps,
        n_clips=len(state.pieces),
        left_out=state.reasons,
        n_failed=state.n_failed,
        leaks=state.leaks,
        benchmark=None if state.frozen is None else state.frozen.place,
    )
