"""Reader of Video Reality Test: every real clip with one generated twin from each creator.

The paper describes its layout only as text, so unreel defines this layout:

    clips.csv                      clip,difficulty,prompt     (difficulty: easy or hard)
    real/CLIP.mp4                  the real clip
    CREATOR/CLIP.mp4               its twin by CREATOR, or
    CREATOR/SETTING/CLIP.mp4       its twin by CREATOR in SETTING

`clip` is the file name without its extension. Each row of the table gives the real clip and one
entry for each folder of a creator: n x (1 + K) entries, 149 x (1 + K) in the paper. A missing twin
is a `Rejected`, so that a gap is visible. The clips of one row share their `group`.
"""

from collections.abc import Iterator
from pathlib import Path

from unreel.benchmarks import cells
from unreel.benchmarks.entry import Entry, Rejected, Row
from unreel.benchmarks.folder_layout import REAL, VIDEO_SUFFIXES, find_file_inside_folder
from unreel.benchmarks.layout import Columns, LayoutReader, TableColumns
from unreel.benchmarks.tables import read_table_column_names, read_table_rows
from unreel.core.clip import Generated, Origin, Real
from unreel.core.errors import InvalidValueError, UnreadableSourceError

TABLE = "clips.csv"
DIFFICULTIES = frozenset({"easy", "hard"})

READ = {"clip": "name", "difficulty": "difficulty", "prompt": "prompt"}
"""Columns of the table, and the field that each is read as."""
_NEEDED = frozenset({"clip", "difficulty"})

Folders = tuple[tuple[str, Origin], ...]


def read_reality_benchmark(root: Path) -> Iterator[Row]:
    """Yield the real clip and its generated counterparts for each row of `clips.csv`, in table order."""
    table = root / TABLE
    missing = _NEEDED - set(read_table_column_names(table))
    if missing:
        raise UnreadableSourceError(
            str(table),
            f"no column {min(missing)!r}",
            "Write the columns clip, difficulty and prompt",
        )
    folders = find_origin_folders(root)
    for number, row in enumerate(read_table_rows(table), start=1):
        if isinstance(row, Rejected):
            yield row
            continue
        try:
            clip = cells.parse_clip_location(row.get("clip"), "clip")
            if "/" in clip or clip.lower().endswith(VIDEO_SUFFIXES):
                remedy = "Write the file's name without folder and ending"
                cells.raise_invalid_cell("clip", clip, remedy)
            difficulty = cells.parse_text_cell(row.get("difficulty"), "difficulty").lower()
            if difficulty not in DIFFICULTIES:
                cells.raise_invalid_cell("difficulty", difficulty, "Write easy or hard")
            prompt = cells.parse_text_cell(row.get("prompt"), "prompt")
        except InvalidValueError as error:
            yield Rejected(f"{TABLE} row {number}", str(error))
            continue
        for folder, origin in folders:
            name = f"{folder}/{clip}"
            locations = (f"{name}{suffix}" for suffix in VIDEO_SUFFIXES)
            location = next((path for path in locations if (root / path).is_file()), None)
            if location is None:
                yield Rejected(name, "no video of that name. Add it, or drop the row")
                continue
            yield Entry(
                name=name,
                location=location,
                origin=origin,
                group=clip,
                prompt=prompt,
                difficulty=difficulty,
            )


def is_reality_benchmark(root: Path) -> bool:
    """Return whether `root` contains `real/` and a `clips.csv` with the columns of this layout."""
    table = find_file_inside_folder(root, TABLE)
    return (
        table is not None
        and (root / REAL).is_dir()
        and set(read_table_column_names(table)) >= _NEEDED
    )


def find_origin_folders(root: Path) -> Folders:
    """Return clip folders and origins: `real`, then sorted creators, one folder for each setting."""
    folders: list[tuple[str, Origin]] = [(REAL, Real())]
    for creator in _list_folders(root):
        if creator.name == REAL:
            continue
        settings = _list_folders(creator)
        folders.extend(
            (f"{creator.name}/{setting.name}", Generated(creator.name, setting.name))
            for setting in settings
        )
        if not settings:
            folders.append((creator.name, Generated(creator.name)))
    return tuple(folders)


def _list_folders(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_dir()
        and not path.is_symlink()
        and not path.name.startswith(".")
        and path.name != "__MACOSX"
    )


def _list_columns(path: Path, _mapping: Columns | None) -> Iterator[TableColumns]:
    table = path / TABLE if path.is_dir() else path
    yield table, read_table_column_names(table), READ


LAYOUT = LayoutReader(
    matches=lambda path, _mapping: is_reality_benchmark(path if path.is_dir() else path.parent),
    read=lambda path, _mapping, _outside: read_reality_benchmark(
        path if path.is_dir() else path.parent
    ),
    list_columns=_list_columns,
    tables=(TABLE,),
)
