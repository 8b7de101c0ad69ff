"""Implementation of `train`; it is imported only when `train` is called."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unreel.core.errors import InvalidSettingError
from unreel.core.safe_names import make_safe_file_name
from unreel.core.settings import read_environment_settings
from unreel.engine.progress import OnStep, Progress
from unreel.engine.storage_access import build_clip_access_settings
from unreel.media.access import require_sandbox_protection
from unreel.training.manifest import Going, TrainingResult
from unreel.training.recipe import TrainRecipe, read_train_recipe
from unreel.training.run import TrainingCallbacks, read_training_process_info, train
from unreel.training.sft.validation import EarlyStoppingState

STEPS = "steps"


def prepare_training(
    recipe: str | Path | Mapping[str, Any],
    *,
    data: Sequence[str | Path],
    changes: Sequence[str],
    out: str | Path | None,
    trusted: bool,
) -> tuple[TrainRecipe, Path]:
    """Check the training recipe; return it with the folder of the training.

    Raises:
        SandboxError: Untrusted files cannot be opened safely here.
    """
    checked = read_train_recipe(recipe, data=data, changes=changes)
    require_sandbox_protection(read_environment_settings(), trusted=trusted)
    return checked, Path(out or Path("trainings") / make_safe_file_name(checked.name))


def train_checked_recipe(
    recipe: TrainRecipe,
    folder: Path,
    callbacks: TrainingCallbacks,
    *,
    going: Going,
    accept_leak: bool,
    allow_outside: bool,
    trusted: bool,
) -> TrainingResult:
    """Train the model of a recipe that was already checked."""
    access = build_clip_access_settings(
        read_environment_settings(), trusted=trusted, outside=allow_outside
    )
    return train(
        recipe, folder, access=access, going=going, accept_leak=accept_leak, callbacks=callbacks
    )


def train_in_this_process(
    recipe: TrainRecipe, folder: Path, *, on_progress: OnStep | None, **options: Any
) -> TrainingResult:
    """Train in this process; raise if the recipe needs another number of processes."""
    n_named, n_here = recipe.devices.count * recipe.devices.nodes, read_training_process_info().n
    if n_named != n_here:
        raise InvalidSettingError(
            "devices",
            f"the recipe names {n_named} processes and {n_here} run",
            "Use `unreel train run`, or start your program with `accelerate launch`",
        )
    callbacks = (
        TrainingCallbacks() if on_progress is None else _build_training_callbacks(on_progress)
    )
    return train_checked_recipe(recipe, folder, callbacks, **options)


def _build_training_callbacks(on_progress: OnStep) -> TrainingCallbacks:
    steps = [0, 0]

    def start(first: int, n_steps: int) -> None:
        steps[:] = first, n_steps

    def step(number: int, loss: float, state: EarlyStoppingState) -> None:
        done, due = number - steps[0], steps[1] - steps[0]
        on_progress(STEPS, Progress(done=done, due=due, note=describe_training_step(loss, state)))

    return TrainingCallbacks(on_reading=on_progress, on_start=start, on_step=step)


def describe_training_step(loss: float, state: EarlyStoppingState) -> str:
    """Return a text with the losses after a training step and the number of unreadable examples."""
    held_out = "" if state.last is None else f", held-out loss {state.last['loss']:.4f}"
    unread = f", {len(state.unshown):,} examples could not be shown" if state.unshown else ""
    return f"loss {loss:.4f}{held_out}{unread}"
