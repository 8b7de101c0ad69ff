"""New curation recipes: sources guessed from a folder, sample clips, and a documented template."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, get_type_hints

from unreel.benchmarks.columns import map_fields_to_columns
from unreel.benchmarks.entry import BenchmarkLayout, Rejected
from unreel.benchmarks.folder_layout import walk_videos
from unreel.benchmarks.loader import find_matching_layouts
from unreel.benchmarks.table_entries import LABELS
from unreel.benchmarks.tables import TABLE_SUFFIXES, read_table_column_names
from unreel.core.errors import UnknownNameError, UnreadableSourceError
from unreel.core.judgement import Label
from unreel.core.output_files import OutputDirectory
from unreel.core.table_formats import build_csv_table
from unreel.curation.clip_screens import SCREENS
from unreel.curation.freeze.step import require_empty_folder, require_new_path
from unreel.curation.recipe import CurationRecipe
from unreel.media.access import read_sample_clip
from unreel.recipes.documentation import (
    RecipeKeyDescription,
    RecipeSectionDescription,
    build_recipe_key_description,
    format_toml_value,
    iter_recipe_section_descriptions,
    read_field_docstrings,
)
from unreel.recipes.validation import MOST_PARTS


def describe_recipe_sections() -> Iterator[RecipeSectionDescription]:
    """Yield documentation of global settings, then of each section; screens follow `[screen]`."""
    for section in iter_recipe_section_descriptions(CurationRecipe):
        yield section
        if section.name == "screen":
            yield from map(_describe_screen_settings, sorted(SCREENS.entries))


def find_recipe_sections(name: str | None) -> list[RecipeSectionDescription]:
    """Return the documentation of all recipe sections, or of the section `name` and its subsections.

    Raises:
        UnknownNameError: No section has this name.
    """
    told = list(describe_recipe_sections())
    if name is None:
        return told
    wanted = name.strip("[]")
    found = [one for one in told if f"{one.name}.".startswith(f"{wanted}.")]
    if not found:
        kind = "section of a recipe"
        raise UnknownNameError(kind, name, [one.name for one in told if one.name])
    return found


def _describe_screen_settings(name: str) -> RecipeSectionDescription:
    screen: Any = SCREENS.load(name)
    kinds, notes = get_type_hints(screen, include_extras=True), read_field_docstrings(screen)
    keys = tuple(
        build_recipe_key_description(
            own.name,
            kinds[own.name],
            default=format_toml_value(own.default),
            meaning=notes.get(own.name, ""),
        )
        for own in fields(screen)
        if own.name != "name"
    )
    about = (screen.__doc__ or "").partition("\n")[0]
    return RecipeSectionDescription(name=f"screen.screens.{name}", about=about, keys=keys)


_LICENCE: Final = (
    "there is no licence, and clips without one are excluded: write licence under each source, or "
    "require_licence = false"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeSourceGuess:
    """Guessed `[[source]]` sections of a recipe, and the questions that the user must answer."""

    sources: tuple[dict[str, Any], ...]
    open_questions: tuple[str, ...] = ()


def guess_recipe_sources(path: Path, *, recipe: Path) -> RecipeSourceGuess:
    """Guess the sources at `path`, a folder or a table, for the recipe file `recipe`.

    Raises:
        UnreadableSourceError: There is no possible source at `path`.
    """
    if not path.exists():
        remedy = "Check the path, or draw clips to try it with: unreel curate init --sample"
        raise UnreadableSourceError(str(path), "no such file or folder", remedy)
    shown = Path(os.path.relpath(path, recipe.absolute().parent)).as_posix()
    if path.is_file():
        return _guess_table_source(path, shown)
    layouts = find_matching_layouts(path)
    if len(layouts) == 1:
        silent = (_LICENCE,) if layouts[0] is BenchmarkLayout.FOLDERS else ()
        return RecipeSourceGuess(sources=({"path": shown},), open_questions=silent)
    if layouts:
        names = ", ".join(layout.value for layout in layouts)
        question = f"{shown} can be read as {names}: source.layout names the first"
        source = {"path": shown, "layout": layouts[0].value}
        return RecipeSourceGuess(sources=(source,), open_questions=(question,))
    return _guess_video_sources(path, shown)


def _guess_table_source(path: Path, shown: str) -> RecipeSourceGuess:
    if path.suffix.lower() not in TABLE_SUFFIXES:
        remedy = f"Name a folder, or a table: {', '.join(TABLE_SUFFIXES)}"
        raise UnreadableSourceError(str(path), "no table of clips", remedy)
    columns = read_table_column_names(path)
    binding = map_fields_to_columns(path.name, columns)
    unsaid = [field for field in ("location", "label") if field not in binding]
    has = ", ".join(sorted(columns))
    questions = [
        f'no column is known to hold the {field}: write columns = {{ {field} = "COLUMN" }} '
        f"(the table has: {has})"
        for field in unsaid
    ]
    questions += [] if "licence" in binding else [_LICENCE]
    return RecipeSourceGuess(sources=({"path": shown},), open_questions=tuple(questions))


def _guess_video_sources(path: Path, shown: str) -> RecipeSourceGuess:
    firsts = dict.fromkeys(_iter_top_folders(path))
    if not firsts:
        remedy = "Name a folder with videos or a table of them, or try it with synthetic clips: unreel curate init --sample"
        raise UnreadableSourceError(str(path), "there is no video below it", remedy)
    if all(first in LABELS for first in firsts):
        return RecipeSourceGuess(sources=({"path": shown},), open_questions=(_LICENCE,))
    if "" in firsts or len(firsts) > MOST_PARTS:
        question = 'nothing says which clips are real: write label = "real" or "generated"'
        return RecipeSourceGuess(sources=({"path": shown},), open_questions=(question, _LICENCE))
    unsaid = [first for first in firsts if first not in LABELS]
    question = f'label = "real" or "generated" is to be written for: {", ".join(unsaid)}'
    return RecipeSourceGuess(
        sources=tuple(_build_folder_source(first, shown) for first in firsts),
        open_questions=(question, _LICENCE),
    )


def _build_folder_source(first: str, shown: str) -> dict[str, Any]:
    label = {"label": LABELS[first].value} if first in LABELS else {}
    return {"path": f"{shown}/{first}", "name": first, **label}


def _iter_top_folders(path: Path) -> Iterator[str]:
    """Yield the top-level folder of each video below `path`; "" for a video in `path` itself."""
    for found in walk_videos(path):
        if not isinstance(found, Rejected):
            yield found.partition("/")[0] if "/" in found else ""


_EXAMPLES: Final = {
    "source.layout": '"files"',
    "source.label": '"real"',
    "source.licence": '"CC BY 4.0"',
    "source.limit": "100",
    "screen.decisions": '"decisions.jsonl"',
    "inject.categories": '["sudden-blurring", "object-splitting"]',
    "describe.model": '"openai/gpt-5"',
    "freeze.citation.authors": '["Family, Given"]',
    "freeze.citation.year": "2026",
    "freeze.citation.url": '"https://example.org/dataset"',
}
"""Example values of keys with an empty default."""
_UNTOLD: Final = frozenset({"screen.screens"})
"""Its sections are shown in its place."""
_REPEATED: Final = frozenset({"source.label", "source.creator", "source.licence"})
"""What differs from source to source."""
_PLAIN: Final = frozenset(
    {"text", "true or false", "table", "list: text", "number", "whole number"}
)
_WIDTH: Final = 44


def format_recipe_template(values: Mapping[str, Any], *, head: str) -> str:
    """Format `values` as a TOML recipe below the comment `head`; unused sections are commented out."""
    blocks = [[f"# {line}".rstrip() for line in head.splitlines()]]
    for section in describe_recipe_sections():
        held = _find_dotted_value(section.name, values)
        several = held if isinstance(held, list) else [held]
        told = replace(section, many=len(several) > 1)
        blocks += [
            list(_iter_section_lines(told, one, is_first=not n)) for n, one in enumerate(several)
        ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _find_dotted_value(name: str, values: Mapping[str, Any]) -> Any:
    """Return the value under the dotted `name` in `values`; `None` if it is missing."""
    found: Any = values
    for part in filter(None, name.split(".")):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _iter_section_lines(
    section: RecipeSectionDescription, held: Mapping[str, Any] | None, *, is_first: bool
) -> Iterator[str]:
    if section.name:
        heading = f"[[{section.name}]]" if section.many else f"[{section.name}]"
        yield _format_toml_line(heading, section.about if is_first else "", taken=held is not None)
    given = held or {}
    for key in section.keys:
        place = f"{section.name}.{key.key}".lstrip(".")
        shown = _EXAMPLES.get(place) or key.default
        comment = _format_key_note(key) if is_first else ""
        if place in _UNTOLD:
            continue
        if key.key in given:
            yield _format_toml_line(
                f"{key.key} = {format_toml_value(given[key.key])}", comment, taken=True
            )
        elif shown and (is_first or place in _REPEATED):
            yield _format_toml_line(f"{key.key} = {shown}", comment, taken=False)


def _format_toml_line(text: str, comment: str, *, taken: bool) -> str:
    line = text if taken else f"# {text}"
    return f"{line + '  ':{_WIDTH}}# {comment}" if comment else line


def _format_key_note(key: RecipeKeyDescription) -> str:
    """Format the type, unit and meaning of a recipe key as a comment."""
    kind = "" if key.kind in _PLAIN else key.kind
    unit = f"({key.unit})" if key.unit else ""
    told = " ".join(filter(None, (kind, unit)))
    return f"{told}: {key.meaning}" if told else key.meaning


FOLDER_RECIPE_HEAD: Final = """\
Raw clips to a frozen benchmark: `unreel curate check {file}` tells what it would do, `unreel curate run {file}` does it.
A section behind a `#` is a step that is not taken; a key behind one has the value that is shown, or is only an example."""
_CHOSEN: Final[dict[str, Any]] = {
    "split": {},
    "crop": {},
    "screen": {"screens": {"motion": {}}},
    "lengths": {},
    "normalise": {},
    "audit": {},
    "freeze": {},
}
"""Steps that need no choice: duplicates and watermarks take longer, traces and stories are for some sets only."""


def write_folder_recipe(path: Path, *, recipe: Path) -> RecipeSourceGuess:
    """Write a recipe for the data at `path` to the file `recipe`; return the guesses and questions.

    Raises:
        InvalidSettingError: The file `recipe` exists already.
        UnreadableSourceError: There is no possible source at `path`.
    """
    require_new_path(recipe, "--out")
    guess = guess_recipe_sources(path, recipe=recipe)
    name = path.absolute().stem if path.is_file() else path.absolute().name
    values = {"name": name or "benchmark", "source": list(guess.sources)} | _CHOSEN
    text = format_recipe_template(values, head=FOLDER_RECIPE_HEAD.format(file=recipe.name))
    OutputDirectory(recipe.absolute().parent, published=True).write(recipe.name, text.encode())
    return guess


RECIPE: Final = "curate.toml"
CLIPS: Final = "clips"
TABLE: Final = f"{CLIPS}/manifest.csv"
SAMPLE_RECIPE_HEAD: Final = """\
Drawn clips to a frozen benchmark, on any machine and offline: `unreel curate init sample --sample`, then
`unreel curate run sample/curate.toml`. Half of the clips have a fault drawn in; no camera and no generator took part.
A section behind a `#` is a step that is not taken; a key behind one has the value that is shown, or is only an example."""
VALUES: Final[dict[str, Any]] = {
    "name": "drawn clips",
    "seed": 1,
    "source": [{"path": TABLE}],
    "split": {},
    "crop": {},
    "screen": {"screens": {"motion": {}}},
    "lengths": {},
    "normalise": {"width": 128, "height": 72, "rate": 12},
    "audit": {"texts": False},
    "freeze": {
        "version": "1.0.0",
        "shares": [2, 1, 1],
        "about": "Clips that unreel drew, to try a curation with. They measure nobody.",
    },
}
SAMPLE_CLIPS: Final = (
    *(f"{('real', 'generated')[number % 2]}/{number:02}.mp4" for number in range(12)),
    "real/again.mp4",
    "real/still.mp4",
    "real/whose.mp4",
)
_FILE_OF: Final = {"real/again.mp4": "real/00.mp4"}
_NO_LICENCE: Final = "real/whose.mp4"
_COLUMNS: Final = ("file", "label", "creator", "licence", "source")


def write_sample_curation(folder: Path) -> tuple[Path, int]:
    """Write the sample clips, their table and a recipe into `folder`; return the recipe and the count.

    Raises:
        InvalidSettingError: The folder is not empty.
    """
    require_empty_folder(folder, "FOLDER")
    target = OutputDirectory(folder, published=True)
    rows = []
    for file in SAMPLE_CLIPS:
        target.write(f"{CLIPS}/{file}", read_sample_clip(_FILE_OF.get(file, file)))
        label = file.partition("/")[0]
        creator = "drawn-faulty" if label == Label.GENERATED.value else ""
        licence = "" if file == _NO_LICENCE else "CC0-1.0"
        cells = (file, label, creator, licence, "drawn by unreel")
        rows.append(dict(zip(_COLUMNS, cells, strict=True)))
    target.write(TABLE, build_csv_table(_COLUMNS, rows).encode())
    return target.write(
        RECIPE, format_recipe_template(VALUES, head=SAMPLE_RECIPE_HEAD).encode()
    ), len(rows)
