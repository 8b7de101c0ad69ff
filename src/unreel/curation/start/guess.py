"""Guess the sources of a recipe from the content of a path."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from unreel.benchmarks.columns import bind
from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.folders import walk_videos
from unreel.benchmarks.layout import BenchmarkLayout
from unreel.benchmarks.loader import find_layouts
from unreel.benchmarks.records import LABELS
from unreel.benchmarks.tables import TABLE_SUFFIXES, read_column_names
from unreel.core.errors import UnreadableSourceError
from unreel.recipes.section import MOST_PARTS

_LICENCE: Final = (
    "there is no licence, and clips without one are excluded: write licence under each source, or "
    "require_licence = false"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeGuess:
    """Guessed `[[source]]` sections of a recipe, and the questions that the user must answer."""

    sources: tuple[dict[str, Any], ...]
    open_questions: tuple[str, ...] = ()


def guess_sources(path: Path, *, recipe: Path) -> RecipeGuess:
    """Return the sources at `path`, a folder or a table, for a recipe at that file.

    Raises:
        UnreadableSourceError: There is no possible source.
    """
    if not path.exists():
        remedy = "Check the path, or draw clips to try it with: unreel curate init --sample"
        raise UnreadableSourceError(str(path), "no such file or folder", remedy)
    shown = Path(os.path.relpath(path, recipe.absolute().parent)).as_posix()
    if path.is_file():
        return _guess_from_table(path, shown)
    layouts = find_layouts(path)
    if len(layouts) == 1:
        silent = (_LICENCE,) if layouts[0] is BenchmarkLayout.FOLDERS else ()
        return RecipeGuess(sources=({"path": shown},), open_questions=silent)
    if layouts:
        names = ", ".join(layout.value for layout in layouts)
        question = f"{shown} can be read as {names}: source.layout names the first"
        source = {"path": shown, "layout": layouts[0].value}
        return RecipeGuess(sources=(source,), open_questions=(question,))
    return _guess_from_videos(path, shown)


def _guess_from_table(path: Path, shown: str) -> RecipeGuess:
    if path.suffix.lower() not in TABLE_SUFFIXES:
        remedy = f"Name a folder, or a table: {', '.join(TABLE_SUFFIXES)}"
        raise UnreadableSourceError(str(path), "no table of clips", remedy)
    columns = read_column_names(path)
    binding = bind(path.name, columns)
    unsaid = [field for field in ("location", "label") if field not in binding]
    has = ", ".join(sorted(columns))
    questions = [
        f'no column is known to hold the {field}: write columns = {{ {field} = "COLUMN" }} '
        f"(the table has: {has})"
        for field in unsaid
    ]
    questions += [] if "licence" in binding else [_LICENCE]
    return RecipeGuess(sources=({"path": shown},), open_questions=tuple(questions))


def _guess_from_videos(path: Path, shown: str) -> RecipeGuess:
    firsts = dict.fromkeys(_iter_first_folders(path))
    if not firsts:
        remedy = "Name a folder with videos or a table of them, or try it with synthetic clips: unreel curate init --sample"
        raise UnreadableSourceError(str(path), "there is no video below it", remedy)
    if all(first in LABELS for first in firsts):
        return RecipeGuess(sources=({"path": shown},), open_questions=(_LICENCE,))
    if "" in firsts or len(firsts) > MOST_PARTS:
        question = 'nothing says which clips are real: write label = "real" or "generated"'
        return RecipeGuess(sources=({"path": shown},), open_questions=(question, _LICENCE))
    unsaid = [first for first in firsts if first not in LABELS]
    question = f'label = "real" or "generated" is to be written for: {", ".join(unsaid)}'
    return RecipeGuess(
        sources=tuple(_build_folder_source(first, shown) for first in firsts),
        open_questions=(question, _LICENCE),
    )


def _build_folder_source(first: str, shown: str) -> dict[str, Any]:
    label = {"label": LABELS[first].value} if first in LABELS else {}
    return {"path": f"{shown}/{first}", "name": first, **label}


def _iter_first_folders(path: Path) -> Iterator[str]:
    """Return the folder of each video relative to `path`; "" for `path` itself."""
    for found in walk_videos(path):
        if not isinstance(found, Rejected):
            yield found.partition("/")[0] if "/" in found else ""
