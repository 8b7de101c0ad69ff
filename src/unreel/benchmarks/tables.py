"""Rows of CSV, JSONL and Parquet files, one at a time: no file is held in memory."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from unreel.benchmarks.entry import Rejected
from unreel.core.errors import MissingExtraError, UnreadableSourceError

TABLE_SUFFIXES: Final = (".csv", ".jsonl", ".parquet")
BATCH_ROWS: Final = 1024

Cells = Mapping[str, object]


def read_table(path: Path) -> Iterator[Cells | Rejected]:
    """The rows of `path` in order; a damaged row is a `Rejected` named after its number."""
    match path.suffix.lower():
        case ".csv":
            return _read_csv(path)
        case ".jsonl":
            return _read_jsonl(path)
        case ".parquet":
            return _read_parquet(path)
        case _:
            remedy = f"Give one of {', '.join(TABLE_SUFFIXES)}"
            raise UnreadableSourceError(str(path), "not a table", remedy)


def columns_of(path: Path) -> tuple[str, ...]:
    """The columns that `path` has; in JSONL, those of its first sound row."""
    match path.suffix.lower():
        case ".csv":
            with _open_text(path) as file:
                return _header(path, file)
        case ".parquet":
            return tuple(_parquet_file(path).schema_arrow.names)
        case _:
            rows = read_table(path)
            return next((tuple(row) for row in rows if not isinstance(row, Rejected)), ())


def _read_csv(path: Path) -> Iterator[Cells | Rejected]:
    with _open_text(path) as file:
        columns = _header(path, file)
        file.seek(0)
        reader = csv.reader(file)
        _next_row(reader)
        number = 1
        while True:
            try:
                cells = _next_row(reader)
            except csv.Error as error:
                number += 1
                yield Rejected(f"row {number}", f"not CSV: {error}. Check the quotes of this row")
                continue
            if cells is None:
                return
            number += 1
            if len(cells) > len(columns):
                why = f"{len(cells)} cells under {len(columns)} columns. Quote cells with commas"
                yield Rejected(f"row {number}", why)
            elif cells:
                yield dict(zip_longest(columns, cells))


def _read_jsonl(path: Path) -> Iterator[Cells | Rejected]:
    with _open_binary(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            except (ValueError, RecursionError):
                why = "not a line of JSON in UTF-8. Write one object on each line"
                yield Rejected(f"row {number}", why)
                continue
            if isinstance(row, dict):
                yield row
            else:
                yield Rejected(f"row {number}", "not an object. Write one object on each line")


def _read_parquet(path: Path) -> Iterator[Cells | Rejected]:
    file = _parquet_file(path)
    columns = [column for field in file.schema_arrow for column in _light_columns(field)]
    for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=columns):
        yield from batch.to_pylist()


def _light_columns(field: Any) -> Iterable[str]:
    """Columns to read of `field`: embedded media is left where it is."""
    import pyarrow as pa

    kind = field.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return ()
    if pa.types.is_struct(kind) and {"bytes", "path"} <= {child.name for child in kind.fields}:
        return (f"{field.name}.path",)
    return (field.name,)


def _parquet_file(path: Path) -> Any:
    try:
        import pyarrow.parquet as pq
    except ModuleNotFoundError as error:
        module = "pyarrow"
        raise MissingExtraError(module, "eval") from error
    try:
        return pq.ParquetFile(path)
    except (OSError, ValueError) as error:
        remedy = "Check the path, or write the table again"
        raise UnreadableSourceError(str(path), f"not a Parquet file: {error}", remedy) from error


def _header(path: Path, file: Any) -> tuple[str, ...]:
    try:
        columns = tuple(cell.strip() for cell in _next_row(csv.reader(file)) or ())
    except csv.Error as error:
        remedy = "Write the column names in the first row"
        raise UnreadableSourceError(str(path), f"no CSV header: {error}", remedy) from error
    if not any(columns):
        remedy = "Write the column names in the first row"
        raise UnreadableSourceError(str(path), "no header", remedy)
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        raise UnreadableSourceError(
            str(path), f"column {twice!r} occurs twice", "Rename one of them"
        )
    return columns


def _next_row(reader: Iterator[list[str]]) -> list[str] | None:
    return next(reader, None)


def _open_text(path: Path) -> Any:
    with _open_binary(path) as file:
        start = file.read(2)
    if start in {b"\xff\xfe", b"\xfe\xff"}:
        raise UnreadableSourceError(str(path), "the text is UTF-16", "Save the table as UTF-8")
    # Bytes that are no UTF-8 become lone surrogates, which `cells.text` refuses row by row.
    return path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")


def _open_binary(path: Path) -> Any:
    try:
        return path.open("rb")
    except OSError as error:
        remedy = "Check the path and that you may read it"
        raise UnreadableSourceError(str(path), error.strerror or "unreadable", remedy) from error
