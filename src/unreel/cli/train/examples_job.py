"""Implementation of `unreel train examples` and `export`, imported when they run."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from unreel.cli.output import print_json, print_message
from unreel.cli.progress import ProgressMeter
from unreel.core.errors import UnreadableSourceError
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import make_safe_file_name
from unreel.core.settings import read_environment_settings
from unreel.engine.storage_access import (
    build_clip_access_settings,
    find_clip_change,
    provide_local_clip_file,
)
from unreel.media.access import open_media_reader, require_sandbox_protection
from unreel.reviewers.clip_inputs import ClipInputLoader
from unreel.training.examples.example import compute_epoch_order
from unreel.training.examples.input_size import open_input_sizer
from unreel.training.examples.page import PAGE, TrainingExamplePageItem, write_examples_page
from unreel.training.examples.reading import TrainingExampleSet, read_training_examples
from unreel.training.export import (
    FORMATS,
    HELD_OUT,
    MANIFEST,
    TRAIN,
    ExampleExportResult,
    export_training_examples,
)
from unreel.training.recipe import read_train_recipe


def export_training_data(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Write the training data for another trainer, print the result, and exit the process."""
    out: Path = options["out"]
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UnreadableSourceError(str(out), "not an empty folder", "Name a new one")
    recipe = read_train_recipe(options["recipe"], data=options["data"], changes=options["changes"])
    form = FORMATS[options["trainer"]](recipe)
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
        order = compute_epoch_order(
            examples.train, weights=examples.weights, seed=recipe.seed, epoch=0
        )
        parts = {TRAIN: [examples.train[i] for i in order], HELD_OUT: examples.held_out}
        exported = export_training_examples(
            form, parts, folder=out, loader=showing, keeping=options["keeping"]
        )
    if as_json:
        print_json({"exported": exported, "no_example": examples.left_out})
    else:
        _print_export_result(exported, examples)
    sys.exit(1 if exported.left_out else 0)


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
    if exported.command:
        print_message(f"in that folder: {exported.command}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingExamplesPageResult:
    """Result of `unreel train examples`: the page, its examples and the excluded clips."""

    page: Path
    recipe: str
    view: str
    n_train: int
    n_held_out: int
    left_out: Mapping[str, int]
    not_compared: Mapping[str, int]
    examples: tuple[TrainingExamplePageItem, ...]


def write_training_examples_page(
    *,
    recipe: str,
    data: tuple[str, ...],
    changes: tuple[str, ...],
    most: int,
    out: Path | None,
    accept_leak: bool,
    outside: bool,
    trusted: bool,
) -> TrainingExamplesPageResult:
    """Read the training examples of a recipe, and write a page that shows some of them."""
    settings = read_environment_settings()
    require_sandbox_protection(settings, trusted=trusted)
    resolved = read_train_recipe(recipe, data=data, changes=changes)
    folder = out or Path(f"examples-{make_safe_file_name(resolved.name)}")
    access = replace(build_clip_access_settings(settings, trusted=trusted), outside=outside)
    examples = read_training_examples(
        resolved,
        access=access,
        folder=OutputDirectory(folder).make("found"),
        accept_leak=accept_leak,
    )
    view = open_input_sizer(resolved)
    with open_media_reader(settings, trusted=trusted) as reader:
        showing = ClipInputLoader(
            reader=reader,
            open_file=partial(provide_local_clip_file, access=access),
            find_change=find_clip_change,
        )
        items = write_examples_page(
            resolved, examples, loader=showing, sizer=view, most=most, out=folder
        )
    return TrainingExamplesPageResult(
        page=folder / PAGE,
        recipe=resolved.name,
        view=view.told,
        n_train=len(examples.train),
        n_held_out=len(examples.held_out),
        left_out=examples.left_out.reasons,
        not_compared=examples.not_compared,
        examples=tuple(items),
    )
