"""Benchmarks in one table of clips: with labels (`list`), or with realism scores (`realism`)."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from unreel.benchmarks import cells
from unreel.benchmarks.columns import FieldColumnMapping, map_fields_to_columns
from unreel.benchmarks.entry import Rejected, Row
from unreel.benchmarks.folder_layout import find_file_inside_folder
from unreel.benchmarks.layout import Columns, LayoutReader, TableColumns
from unreel.benchmarks.table_entries import (
    get_row_name,
    has_score_columns,
    parse_entry,
    read_clip_table,
)
from unreel.benchmarks.tables import TABLE_SUFFIXES, read_table_column_names, read_table_rows
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.judgement import Label

_STEMS = ("manifest", "clips")
"""Names of the table in a folder, without suffix; the second counts if nothing else fits the folder."""


def find_benchmark_table(path: Path) -> Path:
    """Return the table at `path`, or the table `manifest` or else `clips` in the directory `path`."""
    if not path.is_dir():
        return path
    tables = next((found for stem in _STEMS if (found := _find_tables(path, stem))), [])
    if len(tables) == 1:
        return tables[0]
    raise UnreadableSourceError(
        str(path),
        "not a single table",
        f"Name the table itself, or call it one of {', '.join(f'manifest{s}' for s in TABLE_SUFFIXES)}",
    )


def find_fallback_tables(path: Path) -> list[Path]:
    """Return the tables `clips` in the directory `path`; none if `path` is a file."""
    return _find_tables(path, _STEMS[1]) if path.is_dir() else []


def _find_tables(folder: Path, stem: str) -> list[Path]:
    names = [f"{stem}{suffix}" for suffix in TABLE_SUFFIXES]
    return [table for name in names if (table := find_file_inside_folder(folder, name))]


def _is_list_table(path: Path, mapping: Columns | None) -> bool:
    return any(binding.has_label_column for binding in _bind_tables(path, mapping))


def _is_realism_table(path: Path, mapping: Columns | None) -> bool:
    return any(
        has_score_columns(binding) and not binding.has_label_column
        for binding in _bind_tables(path, mapping)
    )


def _bind_tables(path: Path, mapping: Columns | None) -> list[FieldColumnMapping]:
    """Return the columns of the tables at `path` that name clips."""
    if path.is_dir():
        tables = _find_tables(path, _STEMS[0])
    else:
        tables = [path] if path.suffix.lower() in TABLE_SUFFIXES else []
    named = tuple((mapping or {}).items())
    bindings = [_bind_columns(table, table.stat().st_mtime_ns, named) for table in tables]
    return [binding for binding in bindings if "location" in binding]


@lru_cache(maxsize=8)
def _bind_columns(
    table: Path, _changed_ns: int, mapping: tuple[tuple[str, str], ...]
) -> FieldColumnMapping:
    """Bind the columns of a table once for both layouts: a Parquet file is opened in a child process."""
    return map_fields_to_columns(str(table), read_table_column_names(table), dict(mapping) or None)


def _list_columns(path: Path, mapping: Columns | None) -> Iterator[TableColumns]:
    table = find_benchmark_table(path)
    columns = dict.fromkeys(read_table_column_names(table))
    yield table, columns, map_fields_to_columns(str(table), columns, mapping).read


def read_realism_table(
    table: Path, mapping: Mapping[str, str] | None = None, *, outside: bool = False
) -> Iterator[Row]:
    """Yield an entry or a rejection for each row of VideoRealBench, a table of realism scores.

    The paper publishes no layout, so unreel defines this one. Alternative column names are in
    `unreel.benchmarks.columns.KNOWN`; a mapping can set any other name. Without a label column, all
    clips are labelled generated. Columns:

    | column | meaning |
    |---|---|
    | `video` | path or URL of the clip |
    | `video_id` | name of the clip; the path if missing |
    | `split` | `train` (2,309 rows in the paper) or `test` (988) |
    | `model`, `prompt` | creator of the clip, and its text prompt |
    | `error_family` | `human-states`, `object-states`, `human-object-interactions`; optional |
    | `score`, `problem_description`, `standard_adherence` | the agreed rating, or instead: |
    | `score_1`, `problem_description_1`, `standard_adherence_1`, ... `_3` | rating per annotator |

    Raise `UnreadableSourceError` if the table has no location column or no score columns.
    """
    binding = map_fields_to_columns(
        str(table), read_table_column_names(table), mapping, outside=outside
    )
    if "location" not in binding or not has_score_columns(binding):
        raise UnreadableSourceError(
            str(table),
            "no columns with clips and scores",
            "Name them with a mapping: location=COLUMN score=COLUMN",
        )
    for number, row in enumerate(read_table_rows(table), start=1):
        if isinstance(row, Rejected):
            yield row
            continue
        try:
            entry = parse_entry(row, binding, label=Label.GENERATED)
            if entry.rating is None:
                cells.raise_invalid_cell(
                    "score", None, "Write the agreed score, or those of three annotators"
                )
            yield entry
        except InvalidValueError as error:
            yield Rejected(get_row_name(row, binding, number=number), str(error))


LIST_LAYOUT = LayoutReader(
    matches=_is_list_table,
    read=lambda path, mapping, outside: read_clip_table(
        find_benchmark_table(path), mapping, outside=outside
    ),
    list_columns=_list_columns,
    takes_mapping=True,
)
REALISM_LAYOUT = LayoutReader(
    matches=_is_realism_table,
    read=lambda path, mapping, outside: read_realism_table(
        find_benchmark_table(path), mapping, outside=outside
    ),
    list_columns=_list_columns,
    takes_mapping=True,
)
