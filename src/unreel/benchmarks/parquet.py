"""Reader of untrusted Parquet files, which checks their memory use before it decodes them."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from unreel.benchmarks.cells import (
    COLUMNS,
    PARQUET_BATCH_BYTES,
    PARQUET_FOOTER_BYTES,
    PARQUET_NESTED_VALUES,
    PARQUET_PAGES,
    PARQUET_PARTS,
)
from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.parquet_pages import (
    ParquetPageHeader,
    find_longest_dictionary_value,
    read_parquet_page_headers,
)
from unreel.core.errors import InvalidValueError, MissingExtraError, UnreadableSourceError
from unreel.core.settings import read_environment_settings

_BATCHES: Final = (1024, 256, 64, 16, 4, 1)
_FEW_ROWS: Final = 10_000
_MAGIC: Final = b"PAR1"
_BUFFER_BYTES: Final = 1 << 20
_SMALLER: Final = (
    "Write it again with small row groups and short cells, plain or with a dictionary, or split it"
)


def read_parquet_column_names(path: Path) -> tuple[str, ...]:
    """Return the column names of the Parquet file at `path`."""
    with _translate_parquet_errors(path):
        return tuple(_open_parquet_file(path).schema_arrow.names)


def read_parquet_rows(path: Path) -> Iterator[Mapping[str, Any] | Rejected]:
    """Yield the rows of a Parquet file in order, without embedded media.

    Raises:
        UnreadableSourceError: The file is not a Parquet file, or would need too much memory.
    """
    with _translate_parquet_errors(path), path.open("rb") as raw:
        file = _open_parquet_file(path)
        columns = [
            column for field in file.schema_arrow for column in _list_columns_without_media(field)
        ]
        max_rows = read_environment_settings().table_rows
        if file.metadata.num_rows > max_rows:  # an unreliable number
            remedy = "Split it, or raise UNREEL_TABLE_ROWS"
            raise UnreadableSourceError(str(path), f"more than {max_rows} rows", remedy)
        number = 0
        for group in range(file.num_row_groups):
            size = _compute_batch_rows(raw, file, group, columns)
            for batch in file.iter_batches(size, row_groups=[group], columns=columns):
                for row in _iter_batch_rows(batch):
                    number += 1
                    yield row or Rejected(f"row {number}", "its cells cannot be read. Correct them")


def _iter_batch_rows(batch: Any) -> Iterator[Mapping[str, Any] | None]:
    """Yield the rows of `batch`; `None` for a row with invalid UTF-8 or an invalid date."""
    try:
        yield from batch.to_pylist()
    except (ValueError, OverflowError):
        for index in range(batch.num_rows):
            try:
                yield batch.slice(index, 1).to_pylist()[0]
            except (ValueError, OverflowError):
                yield None


@contextmanager
def _translate_parquet_errors(path: Path) -> Iterator[None]:
    require_pyarrow()
    import pyarrow as pa

    try:
        yield
    except UnreadableSourceError:
        raise
    except InvalidValueError as error:
        raise UnreadableSourceError(str(path), str(error), _SMALLER) from error
    except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
        remedy = "Check the path, or write the table again"
        raise UnreadableSourceError(str(path), f"not a Parquet file: {error}", remedy) from error


def require_pyarrow() -> None:
    """Raise `MissingExtraError`, which names the extra, if pyarrow is not installed."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ModuleNotFoundError as error:
        module = "pyarrow"
        raise MissingExtraError(module, "eval") from error


def _open_parquet_file(path: Path) -> Any:
    import pyarrow.parquet as pq

    with path.open("rb") as raw:
        _require_small_footer(raw)
    file = pq.ParquetFile(
        path,
        buffer_size=_BUFFER_BYTES,
        thrift_string_size_limit=PARQUET_FOOTER_BYTES,
        thrift_container_size_limit=PARQUET_PARTS,
    )
    if len(file.schema_arrow.names) > COLUMNS:
        msg = f"more than {COLUMNS} columns"
        raise InvalidValueError(msg)
    return file


def _require_small_footer(raw: BinaryIO) -> None:
    size = raw.seek(0, os.SEEK_END)
    raw.seek(max(0, size - 8))
    end = raw.read(8)
    if end[4:] != _MAGIC:
        msg = "its end is not that of a Parquet file"
        raise ValueError(msg)
    if int.from_bytes(end[:4], "little") > PARQUET_FOOTER_BYTES:
        msg = f"a footer of more than {PARQUET_FOOTER_BYTES} bytes"
        raise InvalidValueError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ColumnSizeBound:
    """Upper bounds on the decoded size of one column in one row group."""

    nested: bool
    n_values: int
    whole_bytes: int
    """Size of all values."""
    value_bytes: int
    """Maximum size of a value that refers to the dictionary."""
    page_bytes: int
    """Size of the largest page of plain values."""
    page_values: int
    """Minimum number of values of such a page, without the last page."""

    def batch_bytes(self, n_rows: int) -> int:
        """Return an upper bound on the decoded bytes of `n_rows` rows of the column."""
        if self.nested:
            return self.whole_bytes  # one row may contain all values
        pages = n_rows // max(1, self.page_values) + 2
        return min(self.whole_bytes, n_rows * self.value_bytes + pages * self.page_bytes)


def _compute_batch_rows(raw: BinaryIO, file: Any, group: int, columns: list[str]) -> int:
    """Return the number of rows of the row group `group` that may be decoded in one batch.

    Raises:
        InvalidValueError: Even a small batch would need too much memory.
    """
    extents = list(_iter_column_size_bounds(raw, file, group, columns))
    if sum(extent.n_values for extent in extents if extent.nested) > PARQUET_NESTED_VALUES:
        msg = f"more than {PARQUET_NESTED_VALUES} nested values in one row group"
        raise InvalidValueError(msg)
    n_rows = file.metadata.row_group(group).num_rows
    for size in _BATCHES:
        if size < _BATCHES[2] and n_rows > _FEW_ROWS:
            break
        if sum(extent.batch_bytes(size) for extent in extents) <= PARQUET_BATCH_BYTES:
            return size
    msg = f"a few of its rows would take up more than {PARQUET_BATCH_BYTES} bytes"
    raise InvalidValueError(msg)


def _iter_column_size_bounds(
    raw: BinaryIO, file: Any, group: int, columns: list[str]
) -> Iterator[_ColumnSizeBound]:
    chunks = file.metadata.row_group(group)
    n_pages = 0
    for index in range(chunks.num_columns):
        chunk, schema = chunks.column(index), file.schema.column(index)
        path = chunk.path_in_schema
        if not any(path == column or path.startswith(f"{column}.") for column in columns):
            continue
        start = chunk.data_page_offset
        if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
            start = chunk.dictionary_page_offset
        pages = []
        for page in read_parquet_page_headers(
            raw, start=start, n_bytes=chunk.total_compressed_size
        ):
            pages.append(page)
            n_pages += 1
            if n_pages > PARQUET_PAGES:
                msg = f"more than {PARQUET_PAGES} pages"
                raise InvalidValueError(msg)
        yield _build_column_size_bound(raw, pages, chunk=chunk, schema=schema)


def _build_column_size_bound(
    raw: BinaryIO, pages: list[ParquetPageHeader], *, chunk: Any, schema: Any
) -> _ColumnSizeBound:
    referring = [page for page in pages if page.refers]
    plain = [page for page in pages if not (page.refers or page.is_dictionary)]
    value_bytes = _get_fixed_value_size(schema)
    if value_bytes is None:
        longest = (
            find_longest_dictionary_value(raw, page, chunk.compression)
            for page in pages
            if page.is_dictionary
        )
        value_bytes = max(longest, default=0) + 8
    n_referring = sum(page.n_values for page in referring)
    return _ColumnSizeBound(
        nested=schema.max_repetition_level > 0,
        n_values=sum(page.n_values for page in (*referring, *plain)),
        whole_bytes=n_referring * value_bytes + sum(page.unpacked_bytes for page in plain),
        value_bytes=value_bytes,
        page_bytes=max((page.unpacked_bytes for page in plain), default=0),
        page_values=min((page.n_values for page in plain[:-1]), default=1024),
    )


def _get_fixed_value_size(schema: Any) -> int | None:
    """Return the size of one value in bytes; `None` if the size varies."""
    match schema.physical_type:
        case "BYTE_ARRAY":
            return None
        case "FIXED_LEN_BYTE_ARRAY":
            return int(schema.length)
        case _:
            return 12


def _list_columns_without_media(field: Any) -> Iterable[str]:
    """Return the columns of `field` to read; embedded media is skipped."""
    import pyarrow as pa

    kind = field.type
    binary = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    if any(is_kind(kind) for is_kind in binary):
        return ()
    if pa.types.is_struct(kind) and {"bytes", "path"} <= {child.name for child in kind.fields}:
        return (f"{field.name}.path",)
    return (field.name,)
