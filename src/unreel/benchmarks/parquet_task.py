"""Sandbox tasks that read a Parquet file with pyarrow.

pyarrow is C++ code that parses untrusted bytes. It is loaded before the process gives up its rights,
and reads the file afterwards, in one thread. Rows leave the process as lines of JSON.
"""

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any, BinaryIO

from unreel.benchmarks.cells import COLUMNS
from unreel.core.errors import MediaError
from unreel.core.failure import FailureReason
from unreel.media.messages import Task, TaskReplyPayload

BATCH_ROWS = 256
_MAX_THRIFT_ITEMS = 10_000
"""Maximum number of elements in a list of the footer, such as columns and row groups."""
_FOOTER_STRING_BYTES = 16 << 20


def _translate_errors(task: Callable[..., TaskReplyPayload]) -> Task:
    """Return `task` with errors of pyarrow as failures of the file."""

    @wraps(task)
    def run(file: BinaryIO, request: Mapping[str, Any]) -> TaskReplyPayload:
        import pyarrow as pa

        try:
            return task(file, request)
        except MemoryError:
            raise
        except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
            raise MediaError(FailureReason.UNDECODABLE, str(error)) from error

    return run


@_translate_errors
def read_table_shape(file: BinaryIO, _request: Mapping[str, Any]) -> TaskReplyPayload:
    """Return the number of rows and of row groups, and the column names as a JSON list."""
    table = _open_table(file)
    metadata = table.metadata
    header = {"n_rows": metadata.num_rows, "n_groups": metadata.num_row_groups}
    return TaskReplyPayload(header, (json.dumps(table.schema_arrow.names).encode(),))


@_translate_errors
def read_table_rows(file: BinaryIO, request: Mapping[str, Any]) -> TaskReplyPayload:
    """Return rows of the row group `group` from row `first` on, without embedded media.

    Each row is one line of JSON; `null` is a row with invalid UTF-8 or an invalid date. The reply ends
    after the batch that exceeds `most_bytes`; `next` is the row after it, `None` at the group's end.
    """
    table = _open_table(file)
    columns = [name for field in table.schema_arrow for name in _list_columns_without_media(field)]
    lines, n_bytes, number = list[bytes](), 0, 0
    for batch in table.iter_batches(
        BATCH_ROWS, row_groups=[request["group"]], columns=columns, use_threads=False
    ):
        number += batch.num_rows
        if number <= request["first"]:
            continue
        for row in _iter_batch_rows(batch):
            lines.append(json.dumps(row, default=str).encode())
            n_bytes += len(lines[-1])
        if n_bytes > request["most_bytes"]:
            return TaskReplyPayload({"next": number}, (b"\n".join(lines),))
    return TaskReplyPayload({"next": None}, (b"\n".join(lines),))


def _open_table(file: BinaryIO) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.ParquetFile(
        pa.PythonFile(file, mode="r"),
        pre_buffer=False,  # it reads in threads, which the child may not start
        thrift_string_size_limit=_FOOTER_STRING_BYTES,
        thrift_container_size_limit=_MAX_THRIFT_ITEMS,
    )
    if len(table.schema_arrow.names) > COLUMNS:
        raise ValueError(f"more than {COLUMNS} columns")
    return table


def _iter_batch_rows(batch: Any) -> Iterator[Mapping[str, Any] | None]:
    try:
        yield from batch.to_pylist()
    except (ValueError, OverflowError):
        for index in range(batch.num_rows):
            try:
                yield batch.slice(index, 1).to_pylist()[0]
            except (ValueError, OverflowError):
                yield None


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


def _prepare_tasks() -> Mapping[str, Task]:
    """Read a small table with each compression, so that all code is loaded; return the tasks."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_memory_pool(pa.system_memory_pool())  # the others reserve memory in advance
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    table = pa.table({"name": ["a", "b"], "number": [1, 2], "list": [[1.5], []]})
    for compression in ("snappy", "zstd", "gzip", "brotli", "lz4", "none"):
        file = io.BytesIO()
        pq.write_table(table, file, compression=compression)
        read_table_shape(file, {})
        read_table_rows(file, {"group": 0, "first": 0, "most_bytes": 1})
    return {"shape": read_table_shape, "rows": read_table_rows}


TASKS: Mapping[str, Task] = _prepare_tasks()
