"""`unreel train`: training of a reviewer on human judgements."""

import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from unreel.api import training as api
from unreel.cli.compare_checkpoints import compare_checkpoints
from unreel.cli.lazy_group import LazyCommandGroup
from unreel.cli.options import settings_options
from unreel.cli.output import echo, json_option, print_json, print_message, print_table
from unreel.cli.process_signals import (
    StopSignalReceived,
    add_resume_note_on_stop,
    defer_first_stop_signal,
)
from unreel.cli.progress import ProgressMeter
from unreel.core.errors import InvalidSettingError
from unreel.engine.progress import Progress, format_duration

if TYPE_CHECKING:
    from unreel.training.manifest import TrainingResult
    from unreel.training.recipe import TrainRecipe
    from unreel.training.run import TrainingCallbacks, TrainingProcessInfo
    from unreel.training.sft.validation import EarlyStoppingState

MEASURED_STEPS = 10
"""Number of steps after which the measured rate is printed."""


@click.group(cls=LazyCommandGroup)
def train() -> None:
    """Train a model on human judgements with one recipe.

    RECIPE is a TOML file, or the name of a recipe of unreel: see `unreel train recipes`.
    """


@train.command(short_help="Train a model, or resume a training.")
@settings_options(api.TrainSettings)
@click.option(
    "--resume",
    "going",
    flag_value="resume",
    help="Resume an interrupted training. The command fails if there is none.",
)
@click.option(
    "--fresh",
    "going",
    flag_value="fresh",
    help="Delete the existing checkpoints, and start the training again.",
)
@json_option
def run(
    settings: api.TrainSettings, *, going: Literal["resume", "fresh"] | None, as_json: bool
) -> None:
    """Train the model of RECIPE, and write it to OUT/model.

    Prints the number of examples and tokens before it starts, and after ten steps the measured rate and the
    remaining time. A second call resumes, also after kill -9. Ctrl-C saves a checkpoint after the current step.
    """
    recipe, folder = api.prepare_training(settings)
    process = api.read_process_info()
    _start_device_processes(recipe, folder, process)
    with _TrainingProgressDisplay(recipe, folder, process) as display:
        trained = api.train_recipe(
            settings, recipe, folder, display.callbacks, going=going or "either"
        )
        display.require_end(trained)
    if process.is_first:
        _print_training_result(trained, as_json=as_json)
    sys.exit(1 if trained.unshown else 0)


def _start_device_processes(
    recipe: "TrainRecipe", folder: Path, process: "TrainingProcessInfo"
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
    launch = api.write_launch_config(recipe, folder, typed=tuple(sys.argv[3:]))
    if devices.nodes > 1:
        print_message(
            "start one of these on each machine, with MASTER as the address of the first:"
        )
        echo(*launch.commands)
        sys.exit(0)
    os.execv(  # noqa: S606  the very interpreter that runs here, with the words that were typed
        sys.executable, [sys.executable, *launch.arguments, *sys.argv[1:]]
    )


class _TrainingProgressDisplay:
    """Progress display of a training; a stop signal ends the training after its current step."""

    def __init__(self, recipe: "TrainRecipe", folder: Path, process: "TrainingProcessInfo") -> None:
        self._folder, self._process = folder, process
        self._open, self._meter = ExitStack(), ProgressMeter()
        self._signals: list[int] = []
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
    def callbacks(self) -> "TrainingCallbacks":
        """Return the callbacks that show the progress of a training and stop it after a signal."""
        return api.build_callbacks(
            on_reading=self._meter.step,
            on_examples=lambda n, tokens: print_message(
                f"an epoch has {n:,} examples with about {tokens:,} tokens"
            ),
            on_start=self._begin,
            on_step=self._step,
            should_stop=lambda: bool(self._signals),
        )

    def require_end(self, trained: "TrainingResult") -> None:
        """Raise `StopSignalReceived` if a signal stopped the training before its end."""
        if trained.ended == "asked" and self._signals:
            stopped = StopSignalReceived(self._signals[0])
            stopped.add_note(f"the checkpoint of step {trained.step:,} is saved")
            raise stopped

    def _begin(self, start: int, n_steps: int) -> None:
        self._start, self._n_steps = start, n_steps
        self._signals = self._open.enter_context(defer_first_stop_signal())
        self._meter.expect(api.STEPS, n_steps - start)

    def _step(self, step: int, loss: float, state: "EarlyStoppingState") -> None:
        if not self._process.is_first:
            return
        note = api.describe_training_step(loss, state)
        progress = Progress(done=step - self._start, note=note)
        self._meter.step(api.STEPS, progress)
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


def _print_training_result(trained: "TrainingResult", *, as_json: bool) -> None:
    if as_json:
        print_json(trained)
        return
    for name, reason, detail in trained.unshown.values():
        print_message(f"excluded from training: {name}, {reason}: {detail}")
    ends = {"done": "all steps taken", "early": "stopped by patience"}
    losses = {"last loss": trained.loss, "held-out loss": trained.held_out_loss}
    texts = [f"; {name} {loss:.4f}" for name, loss in losses.items() if loss is not None]
    print_message(
        f"{ends[trained.ended]}; the model is that of step {trained.step:,}{''.join(texts)}"
    )
    if trained.gain is not None:
        print_message(f"the reward of held-out answers rose by {trained.gain}")
    print_message(
        f"next: unreel train card {trained.model}, or unreel eval BENCHMARK --model local/{trained.model}"
    )
    echo(str(trained.model))


@train.command(short_help="Print the card of a checkpoint.")
@click.argument("checkpoint", type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
def card(*, checkpoint: Path, as_json: bool) -> None:
    """Print the card of CHECKPOINT: data, recipe, licences, scores and limits."""
    model_card, text = api.read_card(checkpoint)
    if as_json:
        print_json(model_card)
    else:
        echo(*text.rstrip("\n").split("\n"))


@train.command(short_help="List the recipes of unreel.")
@json_option
def recipes(*, as_json: bool) -> None:
    """List the recipes of unreel, with the published results that they reproduce."""
    shipped = api.read_shipped_recipes()
    figures = [recipe.published.figures if recipe.published else {} for recipe in shipped]
    rows = [
        {
            "recipe": recipe.name,
            "model": recipe.model.name,
            "tune": recipe.model.tune,
            "asks": ", ".join(f"{d.protocol} {d.condition.prompt}" for d in recipe.data),
        }
        for recipe in shipped
    ]
    if as_json:
        print_json([row | {"published": f} for row, f in zip(rows, figures, strict=True)])
        return
    texts = [", ".join(f"{name} {value:g}" for name, value in f.items()) for f in figures]
    print_table(
        (*rows[0], "published"),
        [row | {"published": text or "-"} for row, text in zip(rows, texts, strict=True)],
    )


@train.command(short_help="Write a page with training examples.")
@settings_options(api.ExampleSettings)
@json_option
def examples(settings: api.ExampleSettings, *, as_json: bool) -> None:
    """Write a page with examples of RECIPE: input frames, boxes, prompt and answer.

    Frames are resized by the model's own processor if its folder is present, otherwise by the rule of the
    model family; the page states which. No weights are read.
    """
    result = api.write_examples(settings)
    if as_json:
        print_json(result)
        return
    for reason, n in result.left_out.items():
        print_message(f"excluded: {n} {reason}")
    for reason, n in result.not_compared.items():
        print_message(f"not compared by their frames: {n} {reason}")
    print_message(f"{result.n_train} training examples, {result.n_held_out} held out")
    print_message(f"{len(result.examples)} are shown; sizes and tokens by {result.view}")
    echo(result.page)


@train.command(short_help="Export the training data for another trainer.")
@settings_options(api.ExportSettings)
@json_option
def export(settings: api.ExportSettings, *, as_json: bool) -> None:
    """Export the training data of RECIPE for another trainer, with its settings.

    Boxes use the coordinate space of the trainer's resize. Differences from unreel are printed and stored
    in unreel-export.json.

    Exits with status 1 if rows could not be written.
    """
    with ProgressMeter() as meter:
        exported, left_out = api.export_examples(settings, meter.step)
    if as_json:
        print_json({"exported": exported, "no_example": left_out})
    else:
        print_message(
            f"{exported.n_train} examples and {exported.n_held_out} held out for {exported.trainer} in "
            f"{exported.folder}",
            f"frames: {exported.sampling}",
        )
        for reason, n in {**left_out.reasons, **exported.left_out}.items():
            print_message(f"  excluded: {n} {reason}")
        if exported.differences:
            differences = (f"  {text}" for text in exported.differences)
            print_message("differences from unreel:", *differences)
        print_message(
            "all of it is in unreel-export.json; docs/training-elsewhere.md explains the training"
        )
        if exported.command:
            print_message(f"in that folder: {exported.command}")
    sys.exit(1 if exported.left_out else 0)


train.add_command(compare_checkpoints)
