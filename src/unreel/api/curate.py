"""`curate`: raw video to a frozen benchmark, from Python."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unreel.core.registry import LazyImport
from unreel.core.settings import read_environment_settings
from unreel.engine.progress import JobCallbacks, Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class CurationResult:
    """Result of a curation, which may have stopped before the benchmark was frozen."""

    place: str
    """Working folder or prefix of the curation."""
    steps: tuple[str, ...]
    """Names of the finished steps."""
    n_clips: int
    """Number of clips that no step excluded."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Number of excluded clips, by step and reason."""
    n_failed: int = 0
    """Number of clips that were excluded because of an error, not by the rule of a step."""
    leaks: bool = False
    """Whether the audit found that file properties reveal the labels."""
    benchmark: str | None = None
    """Path of the frozen benchmark; `None` before it is frozen, or if a leak was not accepted."""


def curate(
    recipe: str | Path | Mapping[str, Any],
    *,
    out: str | Path | None = None,
    until: str | None = None,
    engine: str = "local",
    retry_failed: bool = False,
    accept_leak: bool = False,
    trusted: bool = False,
    on_progress: Callable[[str, Progress], None] | None = None,
) -> CurationResult:
    """Run the steps of `recipe`, from raw files to the frozen benchmark; finished work is kept.

    Args:
        recipe: A TOML file, or its sections as a mapping; relative paths start from the file, or
            from the working directory.
        out: Working folder or `s3://bucket/prefix`; below `curations/` by default.
        until: The last step to run.
        engine: `local` or `ray`.
        retry_failed: Retry failed items.
        accept_leak: Freeze although file properties reveal the labels.
        trusted: Open clips in this process; by default a confined child does.
        on_progress: Callback with a step and its progress, called from another thread.

    Raises:
        InvalidSettingError: The recipe has an unsupported setting.
        MissingExtraError: A package of a step is not installed.
        UnreadableSourceError: A source cannot be read.
    """
    run_curation = LazyImport("unreel.curation.curation_run:run_curation", "curate").load()
    from unreel.curation.curation_run import CurationRecipeJob, open_curation_context
    from unreel.curation.recipe import parse_curation_recipe, read_curation_recipe
    from unreel.engine.run import ALL_FAILURES
    from unreel.engine.storage_access import build_clip_access_settings
    from unreel.media.access import require_sandbox_protection

    if isinstance(recipe, Mapping):
        resolved, root = parse_curation_recipe(recipe), Path.cwd()
    else:
        resolved, root = read_curation_recipe(Path(recipe)), Path(recipe).absolute().parent
    settings = read_environment_settings()
    require_sandbox_protection(settings, trusted=trusted)
    context = open_curation_context(
        resolved, out, build_clip_access_settings(settings, trusted=trusted), engine=engine
    )
    if retry_failed:
        context = replace(context, retry_failed=ALL_FAILURES)
    if on_progress is not None:
        context = replace(context, callbacks=JobCallbacks(on_step=on_progress))
    curation = CurationRecipeJob(
        recipe=resolved, root=root, context=context, accept_leak=accept_leak
    )
    state = run_curation(curation, until=until)
    return CurationResult(
        place=context.place.uri,
        steps=state.steps,
        n_clips=len(state.segments),
        left_out=state.reasons,
        n_failed=state.n_failed,
        leaks=state.leaks,
        benchmark=None if state.frozen is None else state.frozen.place,
    )
