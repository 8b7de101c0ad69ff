"""The page of `unreel train examples`, from the command line."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from unreel.core.names import plain_name
from unreel.core.output_files import OutputDirectory
from unreel.core.settings import read_settings
from unreel.engine.resolve_location import open_access
from unreel.engine.storage_access import find_change, local_copy
from unreel.media.access import media_reader, require_protection
from unreel.reviewers.ask import PresentationSettings
from unreel.training.examples.input_size import open_view
from unreel.training.examples.page import PAGE, PageExample, write_page
from unreel.training.examples.reading import read_examples
from unreel.training.recipe import read_recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenExamples:
    """Written examples, and their description."""

    page: Path
    recipe: str
    view: str
    n_train: int
    n_held_out: int
    left_out: Mapping[str, int]
    not_compared: Mapping[str, int]
    examples: tuple[PageExample, ...]


def show_examples(  # noqa: PLR0913  one parameter for each option
    *,
    recipe: str,
    data: tuple[str, ...],
    changes: tuple[str, ...],
    most: int,
    out: Path | None,
    accept_leak: bool,
    outside: bool,
    trusted: bool,
) -> WrittenExamples:
    """Read the examples of the recipe and write their page."""
    settings = read_settings()
    require_protection(settings, trusted=trusted)
    resolved = read_recipe(recipe, data=data, changes=changes)
    folder = out or Path(f"examples-{plain_name(resolved.name)}")
    access = replace(open_access(settings, trusted=trusted), outside=outside)
    found = read_examples(
        resolved,
        access=access,
        folder=OutputDirectory(folder).make("found"),
        accept_leak=accept_leak,
    )
    view = open_view(resolved)
    with media_reader(settings, trusted=trusted) as reader:
        showing = PresentationSettings(
            reader=reader, open_file=partial(local_copy, access=access), find_change=find_change
        )
        shown = write_page(resolved, found, showing=showing, view=view, most=most, out=folder)
    return WrittenExamples(
        page=folder / PAGE,
        recipe=resolved.name,
        view=view.told,
        n_train=len(found.train),
        n_held_out=len(found.held_out),
        left_out=found.left_out.reasons,
        not_compared=found.not_compared,
        examples=tuple(shown),
    )
