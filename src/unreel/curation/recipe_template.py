"""New curation recipes: sources guessed from a folder, sample clips, and a documented template."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from unreel.benchmarks.columns import map_fields_to_columns
from unreel.benchmarks.entry import BenchmarkLayout, Rejected
from unreel.benchmarks.folder_layout import walk_videos
from unreel.benchmarks.loader import find_matching_layouts
from unreel.benchmarks.table_entries import LABELS
from unreel.benchmarks.tables import TABLE_SUFFIXES, read_table_column_names
from unreel.core.command_options import read_field_docstrings
from unreel.core.errors import UnknownNameError, UnreadableSourceError
from unreel.core.judgement import Label
from unreel.core.output_files import OutputDirectory
from unreel.core.table_formats import build_csv_table
from unreel.curation.clip_screens import SCREENS
from unreel.curation.freeze.step import require_empty_folder, require_new_path
from unreel.curation.recipe import CurationRecipe
from unreel.media.access import read_sample_clip
from unreel.recipes.documentation import (
    RecipeSectionDescription,
    build_recipe_key_description,
    format_toml_value,
    iter_recipe_section_descriptions,
)
from unreel.recipes.validation import MAX_PARTS


def describe_recipe_sections() -> Iterator[RecipeSectionDescription]:
    """Yield documentation of global settings, then of each section; screens follow `[screen]`."""
    for section in iter_recipe_section_descriptions(CurationRecipe):
        yield section
        if section.name == "screen":
            for name in sorted(SCREENS.entries):
                screen: Any = SCREENS.load(name)
                kinds = get_type_hints(screen, include_extras=True)
                notes = read_field_docstrings(screen)
                keys = tuple(
                    build_recipe_key_description(
                        field.name,
                        kinds[field.name],
                        default=format_toml_value(field.default),
                        meaning=notes.get(field.name, ""),
                    )
                    for field in fields(screen)
                    if field.name != "name"
                )
                about = (screen.__doc__ or "").partition("\n")[0]
                yield RecipeSectionDescription(
                    name=f"screen.screens.{name}", about=about, keys=keys
                )


def find_recipe_sections(name: str | None) -> list[RecipeSectionDescription]:
    """Return the documentation of all recipe sections, or of the section `name` and its subsections."""
    sections = list(describe_recipe_sections())
    if name is None:
        return sections
    stripped = name.strip("[]")
    matches = [section for section in sections if f"{section.name}.".startswith(f"{stripped}.")]
    if not matches:
        raise UnknownNameError(
            "section of a recipe", name, [section.name for section in sections if section.name]
        )
    return matches


_LICENCE = (
    "clips without a licence are excluded: write licence under each source, or "
    "require_licence = false"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeSourceGuess:
    """Guessed `[[source]]` sections of a recipe, and the questions that the user must answer."""

    sources: tuple[dict[str, Any], ...]
    open_questions: tuple[str, ...] = ()


def guess_recipe_sources(path: Path, *, recipe: Path) -> RecipeSourceGuess:
    """Guess the sources at `path`, a folder or a table, for the recipe file `recipe`."""
    if not path.exists():
        raise UnreadableSourceError(
            str(path),
            "no such file or folder",
            "Check the path, or draw clips to try it with: unreel curate init --sample",
        )
    relative = Path(os.path.relpath(path, recipe.absolute().parent)).as_posix()
    source: dict[str, Any] = {"path": relative}
    if path.is_file():
        if path.suffix.lower() not in TABLE_SUFFIXES:
            raise UnreadableSourceError(
                str(path),
                "not a table of clips",
                f"Name a folder, or a table: {', '.join(TABLE_SUFFIXES)}",
            )
        columns = read_table_column_names(path)
        mapping = map_fields_to_columns(path.name, columns)
        has = ", ".join(sorted(columns))
        questions = [
            f'no column is known to contain the {field}: write columns = {{ {field} = "COLUMN" }} '
            f"(the table has: {has})"
            for field in ("location", "label")
            if field not in mapping
        ]
        questions += [] if "licence" in mapping else [_LICENCE]
        return RecipeSourceGuess(sources=(source,), open_questions=tuple(questions))
    layouts = find_matching_layouts(path)
    if len(layouts) == 1:
        needs_licence = layouts[0] == BenchmarkLayout.FOLDERS
        return RecipeSourceGuess(
            sources=(source,), open_questions=(_LICENCE,) if needs_licence else ()
        )
    if layouts:
        names = ", ".join(layouts)
        question = f"{relative} can be read as {names}: source.layout names the first"
        source["layout"] = layouts[0]
        return RecipeSourceGuess(sources=(source,), open_questions=(question,))
    # The top-level folder of each video; "" for a video in the folder itself.
    videos = (video for video in walk_videos(path) if not isinstance(video, Rejected))
    folders = dict.fromkeys(v.partition("/")[0] if "/" in v else "" for v in videos)
    if not folders:
        raise UnreadableSourceError(
            str(path),
            "contains no video",
            "Name a folder with videos or a table of them, or try it with synthetic clips: unreel curate init --sample",
        )
    unknown = [folder for folder in folders if folder not in LABELS]
    if not unknown:
        return RecipeSourceGuess(sources=(source,), open_questions=(_LICENCE,))
    if "" in folders or len(folders) > MAX_PARTS:
        question = 'the labels of the clips are unknown: write label = "real" or "generated"'
        return RecipeSourceGuess(sources=(source,), open_questions=(question, _LICENCE))
    question = f'label = "real" or "generated" is to be written for: {", ".join(unknown)}'
    sources = []
    for folder in folders:
        label = {"label": LABELS[folder].value} if folder in LABELS else {}
        sources.append({"path": f"{relative}/{folder}", "name": folder, **label})
    return RecipeSourceGuess(sources=tuple(sources), open_questions=(question, _LICENCE))


_EXAMPLES = {
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
_UNTOLD = frozenset({"screen.screens"})
"""Keys that are omitted, because their subsections are shown."""
_REPEATED = frozenset({"source.label", "source.creator", "source.licence"})
"""Keys that are shown for every source, because their values differ."""
_PLAIN = frozenset({"text", "true or false", "table", "list: text", "number", "whole number"})
_WIDTH = 44


def format_recipe_template(values: Mapping[str, Any], *, head: str) -> str:
    """Format `values` as a TOML recipe below the comment `head`; unused sections are commented out."""
    blocks = [[f"# {line}".rstrip() for line in head.splitlines()]]
    for section in describe_recipe_sections():
        value: Any = values
        for part in filter(None, section.name.split(".")):
            value = value.get(part) if isinstance(value, Mapping) else None
        several = value if isinstance(value, list) else [value]
        shared = replace(section, many=len(several) > 1)
        blocks += [
            list(_iter_section_lines(shared, table, is_first=not n))
            for n, table in enumerate(several)
        ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _iter_section_lines(
    section: RecipeSectionDescription, table: Mapping[str, Any] | None, *, is_first: bool
) -> Iterator[str]:
    if section.name:
        heading = f"[[{section.name}]]" if section.many else f"[{section.name}]"
        about = section.about if is_first else ""
        yield _format_toml_line(heading, about, active=table is not None)
    settings = table or {}
    for key in section.keys:
        name = f"{section.name}.{key.key}".lstrip(".")
        example = _EXAMPLES.get(name) or key.default
        comment = ""
        if is_first:
            kind = "" if key.kind in _PLAIN else key.kind
            note = " ".join(filter(None, (kind, f"({key.unit})" if key.unit else "")))
            comment = f"{note}: {key.meaning}" if note else key.meaning
        if name in _UNTOLD:
            continue
        if key.key in settings:
            yield _format_toml_line(
                f"{key.key} = {format_toml_value(settings[key.key])}", comment, active=True
            )
        elif example and (is_first or name in _REPEATED):
            yield _format_toml_line(f"{key.key} = {example}", comment, active=False)


def _format_toml_line(text: str, comment: str, *, active: bool) -> str:
    line = text if active else f"# {text}"
    return f"{line + '  ':{_WIDTH}}# {comment}" if comment else line


FOLDER_RECIPE_HEAD = """\
Raw clips to a frozen benchmark: `unreel curate check {file}` shows what would be done, `unreel curate run {file}` does it.
A section behind a `#` is a step that is not taken; a key behind one has the value that is shown, or is only an example."""
_CHOSEN: dict[str, Any] = {
    "split": {},
    "crop": {},
    "screen": {"screens": {"motion": {}}},
    "lengths": {},
    "normalise": {},
    "audit": {},
    "freeze": {},
}
"""Steps that need no choice: duplicates and watermarks are slow, traces and descriptions suit only some sets."""


def write_folder_recipe(path: Path, *, recipe: Path) -> RecipeSourceGuess:
    """Write a recipe for the data at `path` to the file `recipe`; return the guesses and questions."""
    require_new_path(recipe, "--out")
    guess = guess_recipe_sources(path, recipe=recipe)
    name = path.absolute().stem if path.is_file() else path.absolute().name
    values = {"name": name or "benchmark", "source": list(guess.sources)} | _CHOSEN
    text = format_recipe_template(values, head=FOLDER_RECIPE_HEAD.format(file=recipe.name))
    OutputDirectory(recipe.absolute().parent, published=True).write(recipe.name, text.encode())
    return guess


RECIPE = "curate.toml"
CLIPS = "clips"
TABLE = f"{CLIPS}/manifest.csv"
SAMPLE_RECIPE_HEAD = """\
Drawn clips to a frozen benchmark, on any machine and offline: `unreel curate init sample --sample`, then
`unreel curate run sample/curate.toml`. Half of the clips have a fault drawn in; no camera and no generator took part.
A section behind a `#` is a step that is not taken; a key behind one has the value that is shown, or is only an example."""
VALUES: dict[str, Any] = {
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
        "about": "Clips that unreel drew, to try a curation with. They are no benchmark.",
    },
}
SAMPLE_CLIPS = (
    *(f"{('real', 'generated')[number % 2]}/{number:02}.mp4" for number in range(12)),
    "real/again.mp4",
    "real/still.mp4",
    "real/whose.mp4",
)
_FILE_OF = {"real/again.mp4": "real/00.mp4"}
_NO_LICENCE = "real/whose.mp4"
_COLUMNS = ("file", "label", "creator", "licence", "source")


def write_sample_curation(folder: Path) -> tuple[Path, int]:
    """Write the sample clips, their table and a recipe into `folder`; return the recipe and the count."""
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
