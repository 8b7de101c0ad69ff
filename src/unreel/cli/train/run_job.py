"""Implementation of `unreel train run`, imported when it runs."""

import os
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from unreel.api.training_job import (
    STEPS,
    describe_training_step,
    prepare_training,
    train_checked_recipe,
)
from unreel.cli.output import echo, print_json, print_message
from unreel.cli.process_signals import (
    StopSignalReceived,
    add_resume_note_on_stop,
    defer_first_stop_signal,
)
from unreel.cli.progress import ProgressMeter
from unreel.core.errors import InvalidSettingError
from unreel.engine.progress import Progress, format_duration
from unreel.training.accelerate_config import LAUNCHED, write_accelerate_config
from unreel.training.manifest import TrainingResult
from unreel.training.recipe import TrainRecipe
from unreel.training.run import TrainingCallbacks, TrainingProcessInfo, read_training_process_info
from unreel.training.sft.validation import EarlyStoppingState

MEASURED_STEPS = 10
"""Number of steps after which the measured rate is printed."""


def train_from_recipe(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Train the model of a recipe, print the result, and exit the process."""
    named = {name: options[name] for name in ("recipe", "data", "changes", "out", "trusted")}
    recipe, folder = prepare_training(**named)
    process = read_training_process_info()
    _start_device_processes(recipe, folder, process)
    with _TrainingProgressDisplay(recipe, folder, process) as display:
        trained = train_checked_recipe(
            recipe,
            folder,
            display.spectator,
            going=options["going"] or "either",
            accept_leak=options["accept_leak"],
            allow_outside=options["outside"],
            trusted=options["trusted"],
        )
        display.require_end(trained)
    if process.is_first:
        _print_training_report(trained, as_json=as_json)
    sys.exit(1 if trained.unshown else 0)


def _start_device_processes(
    recipe: TrainRecipe, folder: Path, process: TrainingProcessInfo
) -> None:
    """Replace this process by one process per device if the recipe trains on several devices.

    Does nothing in the started processes. For several machines, the commands to type are printed and
    the process exits.
    """
    devices = recipe.devices
    n = devices.count * devices.nodes
    if process.n == n:
        return
    if process.n_devices < devices.count:
        raise InvalidSettingError(
            "devices.count",
            f"{devices.count} are named and {process.n_devices} are here",
            "To train on one, with as many examples in a step: --set devices.strategy=single --set "
            f"devices.count=1 --set devices.nodes=1 --set optimise.accumulate="
            f"{recipe.optimise.accumulate * n}",
        )
    launch = write_accelerate_config(devices, recipe.model, folder, typed=tuple(sys.argv[3:]))
    if devices.nodes > 1:
        print_message(
            "start one of these on each machine, with MASTER as the address of the first:"
        )
        echo(*launch.commands)
        sys.exit(0)
    arguments = ["-m", "accelerate.commands.launch", "--config_file", str(launch.config)]
    os.execv(  # noqa: S606  the very interpreter that runs here, with the words that were typed
        sys.executable, [sys.executable, *arguments, "-m", LAUNCHED, *sys.argv[1:]]
    )


class _TrainingProgressDisplay:
    """Progress display of a training; a stop signal ends the training after its current step."""

    def __init__(self, recipe: TrainRecipe, folder: Path, process: TrainingProcessInfo) -> None:
        self._folder, self._process = folder, process
        self._open, self._meter = ExitStack(), ProgressMeter()
        self._asked: list[int] = []
        self._start, self._n_steps = 0, 0
        self._per_step = recipe.optimise.batch_size * recipe.optimise.accumulate * process.n
        self._first_step_s: float | None = None

    def __enter__(self) -> "_TrainingProgressDisplay":
        if self._process.is_first:
            self._open.enter_context(self._meter)
        self._open.enter_context(add_resume_note_on_stop(str(self._folder), self._meter))
        self._meter.tell("loading")
        return self

    def __exit__(self, *ended: Any) -> bool | None:
        return self._open.__exit__(*ended)

    @property
    def spectator(self) -> TrainingCallbacks:
        """Return the callbacks that show the progress of a training and stop it after a signal."""
        return TrainingCallbacks(
            on_reading=self._meter.step,
            on_examples=lambda n, tokens: print_message(
                f"an epoch has {n:,} examples with about {tokens:,} tokens"
            ),
            on_start=self._begin,
            on_step=self._step,
            should_stop=lambda: bool(self._asked),
        )

    def require_end(self, trained: TrainingResult) -> None:
        """Raise `StopSignalReceived` if a signal stopped the training before its end."""
        if trained.ended == "asked" and self._asked:
            stopped = StopSignalReceived(self._asked[0])
            stopped.add_note(f"the checkpoint of step {trained.step:,} is saved")
            raise stopped

    def _begin(self, start: int, n_steps: int) -> None:
        self._start, self._n_steps = start, n_steps
        self._asked = self._open.enter_context(defer_first_stop_signal())
        self._meter.expect(STEPS, n_steps - start)

    def _step(self, step: int, loss: float, state: EarlyStoppingState) -> None:
        if not self._process.is_first:
            return
        progress = Progress(done=step - self._start, note=describe_training_step(loss, state))
        self._meter.step(STEPS, progress)
        if self._first_step_s is None:
            self._first_step_s = time.monotonic()
        elif progress.done == MEASURED_STEPS:
            # The first step is not measured: it also loads and compiles.
            rate = (MEASURED_STEPS - 1) / max(time.monotonic() - self._first_step_s, 1e-6)
            left = format_duration((self._n_steps - step) / rate)
            print_message(
                f"{rate:.2g} steps/s ({rate * self._per_step:.2g} examples/s) measured over "
                f"{MEASURED_STEPS} steps; {left} left without validation"
            )


def _print_training_report(trained: TrainingResult, *, as_json: bool) -> None:
    if as_json:
        print_json(trained)
        return
    for name, reason, detail in trained.unshown.values():
        print_message(f"excluded from training: {name}, {reason}: {detail}")
    ends = {"done": "all steps taken", "early": "stopped by patience"}
    loss = "" if trained.loss is None else f"; last loss {trained.loss:.4f}"
    held_out = (
        "" if trained.held_out_loss is None else f"; held-out loss {trained.held_out_loss:.4f}"
    )
    print_message(
        f"{ends[trained.ended]}; the model is that of step {trained.step:,}{loss}{held_out}"
    )
    if trained.gain is not None:
        print_message(f"the reward of held-out answers rose by {trained.gain}")
    print_message(
        f"next: unreel train card {trained.model}, or unreel eval BENCHMARK --model local/{trained.model}"
    )
    echo(str(trained.model))
