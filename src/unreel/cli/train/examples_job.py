"""Implementation of `unreel train examples`, imported when it runs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import make_safe_file_name
from unreel.core.settings import read_environment_settings
from unreel.engine.storage_access import (
    build_clip_access_settings,
    find_clip_change,
    provide_local_clip_file,
)
from unreel.media.access import open_media_reader, require_sandbox_protection
from unreel.reviewers.ask import ClipInputLoader
from unreel.training.examples.input_size import open_input_sizer
from unreel.training.examples.page import PAGE, TrainingExamplePageItem, write_examples_page
from unreel.training.examples.reading import read_training_examples
from unreel.training.recipe import read_train_recipe


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


def write_training_examples_page(  # noqa: PLR0913  one parameter for each option
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
            resolved, examples, showing=showing, view=view, most=most, out=folder
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
