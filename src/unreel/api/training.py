"""`train`: training of a model from a recipe, from Python."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unreel.core.errors import InvalidSettingError
from unreel.core.registry import LazyImport
from unreel.engine.progress import OnStep
from unreel.training.manifest import TrainingResult


def train(
    recipe: str | Path | Mapping[str, Any],
    *,
    data: Sequence[str | Path] = (),
    changes: Sequence[str] = (),
    out: str | Path | None = None,
    resume: bool = False,
    fresh: bool = False,
    accept_leak: bool = False,
    allow_outside: bool = False,
    trusted: bool = False,
    on_progress: OnStep | None = None,
) -> TrainingResult:
    """Train the model of `recipe` in this process, and write it to `out`/model.

    A second call resumes at the last checkpoint.

    Args:
        recipe: A TOML file, the name of a recipe of unreel, or its sections as a mapping.
        data: Benchmarks for the recipe's `[[data]]`, in their order.
        changes: Overrides of single settings, for example `["optimise.epochs=2"]`.
        out: Folder of the training; `trainings/NAME` by default.
        resume: Raise if there is no training to resume.
        fresh: Start again, and delete the existing checkpoints.
        accept_leak: Train although the data contains clips of the evaluation set.
        allow_outside: Let a table name files outside its folder; only for your own tables.
        trusted: Open clips in this process; by default a confined child does.
        on_progress: Callback with `steps`, or another part, and its progress.

    Raises:
        InvalidSettingError: The recipe has an unsupported setting, or needs more processes.
        MissingExtraError: A required package is not installed.
        UnknownNameError: No recipe has that name.
        UnreadableSourceError: The data cannot be read, or `out` contains another training.
    """
    if resume and fresh:
        raise InvalidSettingError(
            "fresh", "a training either resumes or starts again", "Leave out resume or fresh"
        )
    job = "unreel.api.training_job"
    prepare, run_here = (
        LazyImport(f"{job}:{name}", "train").load()
        for name in ("prepare_training", "train_in_this_process")
    )
    checked, folder = prepare(recipe, data=data, changes=changes, out=out, trusted=trusted)
    trained: TrainingResult = run_here(
        checked,
        folder,
        going="fresh" if fresh else "resume" if resume else "either",
        accept_leak=accept_leak,
        allow_outside=allow_outside,
        trusted=trusted,
        on_progress=on_progress,
    )
    return trained
