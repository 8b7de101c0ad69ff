"""Implementation of `unreel train export`, imported when it runs."""

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from unreel.cli.output import print_json, print_message
from unreel.cli.progress import ProgressMeter
from unreel.core.errors import UnreadableSourceError
from unreel.core.settings import read_environment_settings
from unreel.engine.storage_access import (
    build_clip_access_settings,
    find_clip_change,
    provide_local_clip_file,
)
from unreel.media.access import open_media_reader, require_sandbox_protection
from unreel.reviewers.ask import ClipInputLoader
from unreel.training.examples.order import compute_epoch_order
from unreel.training.examples.reading import TrainingExampleSet, read_training_examples
from unreel.training.formats.contract import (
    FORMATS,
    HELD_OUT,
    TRAIN,
    create_trainer_export_job,
    require_trainer_support,
)
from unreel.training.formats.exporting import (
    MANIFEST,
    ExampleExportResult,
    export_training_examples,
)
from unreel.training.recipe import TrainRecipe, read_train_recipe


def export_training_data(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Write the training data for another trainer, print the result, and exit the process."""
    out: Path = options["out"]
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UnreadableSourceError(str(out), "not an empty folder", "Name a new one")
    recipe = read_train_recipe(options["recipe"], data=options["data"], changes=options["changes"])
    order = create_trainer_export_job(
        recipe, as_film=options["as_film"], keeping=options["keeping"]
    )
    trainer = FORMATS.load(options["trainer"])
    require_trainer_support(trainer, order)
    settings = read_environment_settings()
    require_sandbox_protection(settings, trusted=options["trusted"])
    access = build_clip_access_settings(
        settings, trusted=options["trusted"], outside=options["outside"]
    )
    with TemporaryDirectory(prefix="unreel-") as cache, ProgressMeter() as meter:
        examples = read_training_examples(
            recipe,
            access=access,
            folder=Path(cache),
            accept_leak=options["accept_leak"],
            on_step=meter.step,
        )
    with open_media_reader(settings, trusted=options["trusted"]) as reader:
        showing = ClipInputLoader(
            reader=reader,
            open_file=partial(provide_local_clip_file, access=access),
            find_change=find_clip_change,
        )
        parts = {TRAIN: _order_first_epoch_examples(recipe, examples), HELD_OUT: examples.held_out}
        exported = export_training_examples(order, parts, trainer, folder=out, showing=showing)
    if as_json:
        print_json({"exported": exported, "no_example": examples.left_out})
    else:
        _print_export_result(exported, examples)
    sys.exit(1 if exported.left_out else 0)


def _order_first_epoch_examples(recipe: TrainRecipe, examples: TrainingExampleSet) -> list[Any]:
    order = compute_epoch_order(examples.train, weights=examples.weights, seed=recipe.seed, epoch=0)
    return [examples.train[i] for i in order]


def _print_export_result(exported: ExampleExportResult, examples: TrainingExampleSet) -> None:
    print_message(
        f"{exported.n_train} examples and {exported.n_held_out} held out for {exported.trainer} in "
        f"{exported.folder}",
        f"frames: {exported.sampling}",
    )
    for reason, n in {**examples.left_out.reasons, **exported.left_out}.items():
        print_message(f"  excluded: {n} {reason}")
    if exported.differences:
        print_message("differences from unreel:", *(f"  {text}" for text in exported.differences))
    print_message(f"all of it is in {MANIFEST}; docs/training-elsewhere.md explains the training")
    print_message(f"in that folder: {exported.command}")
