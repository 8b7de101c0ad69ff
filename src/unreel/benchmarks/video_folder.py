"""Hugging Face video folders: read and write media files with a `metadata` table next to them.

`datasets.load_dataset("videofolder", data_dir=...)` reads the output of `write_video_folder`.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from unreel.benchmarks.cells import is_url
from unreel.benchmarks.columns import map_fields_to_columns
from unreel.benchmarks.entry import Entry, Rejected, Row
from unreel.benchmarks.folder_layout import find_file_inside_folder
from unreel.benchmarks.layout import Columns, LayoutReader, TableColumns
from unreel.benchmarks.table_entries import convert_entry_to_record, read_clip_table
from unreel.benchmarks.tables import TABLE_SUFFIXES, read_table_column_names
from unreel.benchmarks.unique_names import SeenNameSet
from unreel.core.errors import UnreadableSourceError
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import get_safe_suffix

METADATA = tuple(f"metadata{suffix}" for suffix in TABLE_SUFFIXES)
# `datasets` derives a split from words such as "test" in a path, so written names have none.
MEDIA = "media"
FILES_IN_A_FOLDER = 1000


def read_video_folder(
    root: Path, mapping: Mapping[str, str] | None = None, *, outside: bool = False
) -> Iterator[Row]:
    """Yield an entry or a rejection for each row of the metadata tables of `root`.

    The tables are in `root` or in its direct subfolders. Rows of a table in the folder `test/` get
    the split `test` unless they name a split.
    """
    for table in find_metadata_tables(root):
        folder = table.parent.relative_to(root).as_posix()
        prefix = "" if folder == "." else f"{folder}/"
        for row in read_clip_table(table, mapping, outside=outside):
            yield _prefix_row_paths(prefix, row) if prefix else row


def find_metadata_tables(root: Path) -> tuple[Path, ...]:
    """Return the metadata tables of `root`; if none, the metadata tables of its direct subdirectories."""
    at_root = tuple(table for name in METADATA if (table := find_file_inside_folder(root, name)))
    if at_root:
        return at_root
    folders = sorted(path for path in root.iterdir() if path.is_dir() and not path.is_symlink())
    tables = (
        find_file_inside_folder(root, f"{folder.name}/{name}")
        for folder in folders
        for name in METADATA
    )
    return tuple(table for table in tables if table)


def write_video_folder(
    rows: Iterable[Row],
    into: Path,
    *,
    root: Path,
    media: Literal["copy", "link"] = "copy",
    more: Callable[[Entry], Mapping[str, object]] = lambda _entry: {},
) -> tuple[int, tuple[Rejected, ...]]:
    """Write `rows`, whose files are below `root`, to the new folder `into`.

    Return the number of written entries, and the rows that could not be written.

    Media are numbered copies in `media/`, or hard links with `link` if the file system supports
    them. `metadata.jsonl` is written last and atomically, so a folder with it is complete. Rows
    without a local file, and repeated names, are rejected. Raise
    `UnreadableSourceError` if `into` exists and is not an empty folder.
    """
    if into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise UnreadableSourceError(str(into), "not an empty folder", "Name a new one")
    folder = OutputDirectory(into, published=True)
    refused: list[Rejected] = []
    names = SeenNameSet()
    n_entries = 0
    with folder.create_text("metadata.jsonl") as file:
        for row in rows:
            entry = _reject_unwritable_row(row, root=root, names=names)
            if isinstance(entry, Rejected):
                refused.append(entry)
                continue
            file_name = _format_media_name(n_entries, entry.location)
            _link_or_copy_file(root / entry.location, folder, file_name, media=media)
            if entry.cleaned is not None and not is_url(entry.cleaned):
                cleaned = _format_media_name(n_entries, entry.cleaned, mark="-cleaned")
                _link_or_copy_file(root / entry.cleaned, folder, cleaned, media=media)
                entry = replace(entry, cleaned=cleaned)
            record = {**convert_entry_to_record(entry, file_name=file_name), **more(entry)}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
            n_entries += 1
    return n_entries, tuple(refused)


def _prefix_row_paths(prefix: str, row: Row) -> Row:
    if isinstance(row, Rejected):
        return Rejected(prefix + row.name, row.why)
    location, cleaned = _prefix_location(prefix, row.location), row.cleaned
    return replace(
        row,
        name=location if row.name == row.location else row.name,
        location=location,
        cleaned=None if cleaned is None else _prefix_location(prefix, cleaned),
        split=row.split or prefix.rstrip("/"),
    )


def _prefix_location(prefix: str, location: str) -> str:
    return location if is_url(location) or location.startswith("/") else prefix + location


def _reject_unwritable_row(row: Row, *, root: Path, names: SeenNameSet) -> Row:
    if isinstance(row, Rejected):
        return row
    if is_url(row.location):
        return Rejected(row.name, "the file is behind a URL. Fetch it first")
    for location in (row.location, row.cleaned):
        if location is not None and not is_url(location) and not (root / location).is_file():
            return Rejected(row.name, f"no file at {location}. Fetch or unpack it first")
    if not names.add(row.name):
        return Rejected(row.name, "duplicate name. Give each clip its own")
    return row


def _format_media_name(number: int, location: str, *, mark: str = "") -> str:
    folder = f"{MEDIA}/{number // FILES_IN_A_FOLDER:05d}"
    return f"{folder}/{number:08d}{mark}{get_safe_suffix(location)}"


def _link_or_copy_file(
    source: Path, directory: OutputDirectory, name: str, *, media: Literal["copy", "link"]
) -> None:
    if media == "copy" or not directory.hard_link(source.resolve(), name):
        directory.copy(source, name)


def _list_columns(path: Path, mapping: Columns | None) -> Iterator[TableColumns]:
    for table in find_metadata_tables(path if path.is_dir() else path.parent):
        columns = dict.fromkeys(read_table_column_names(table))
        yield table, columns, map_fields_to_columns(str(table), columns, mapping).read


LAYOUT = LayoutReader(
    matches=lambda path, _mapping: not path.is_dir() or bool(find_metadata_tables(path)),
    read=lambda path, mapping, outside: read_video_folder(
        path if path.is_dir() else path.parent, mapping, outside=outside
    ),
    list_columns=_list_columns,
    tables=METADATA,
    takes_mapping=True,
)
