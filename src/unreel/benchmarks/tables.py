"""Streaming reader of CSV, TSV, JSONL and Parquet tables.

Parquet files are opened by pyarrow in a confined child process. Size limits for untrusted tables are in `unreel.benchmarks.cells`.
"""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import Any

from unreel.benchmarks.cells import CELL_SHOWN, COLUMNS, ROW_BYTES
from unreel.benchmarks.entry import Rejected
from unreel.core.errors import InvalidValueError, MissingExtraError, UnreadableSourceError
from unreel.core.failure import Failure, FailureReason
from unreel.core.input_files import parse_json
from unreel.core.settings import read_environment_settings
from unreel.media.messages import TaskReplyPayload
from unreel.media.sandbox import FileSandbox, SandboxLimits

LIMITS = SandboxLimits(seconds=60, memory_mb=256)
"""Limits of one child, which reads some megabytes of rows."""
_REPLY_BYTES = 8 << 20
_BEYOND_LIMITS = frozenset(
    {FailureReason.OUT_OF_MEMORY, FailureReason.OUT_OF_TIME, FailureReason.WORKER_DIED}
)


def read_parquet_column_names(path: Path) -> tuple[str, ...]:
    """Return the column names of the Parquet file at `path`."""
    return _read_shape(path)[0]


def read_parquet_rows(path: Path) -> Iterator[Mapping[str, Any] | Rejected]:
    """Yield the rows of a Parquet file in order, without embedded media.

    Dates and decimal numbers are text. Raise `SandboxError` if this machine cannot confine a child,
    or `UnreadableSourceError` if the file is not a Parquet file, or would need too much memory.
    """
    _, n_rows, n_groups = _read_shape(path)
    max_rows = read_environment_settings().table_rows
    if n_rows > max_rows:  # an unreliable number
        raise UnreadableSourceError(
            str(path), f"more than {max_rows} rows", "Split it, or raise UNREEL_TABLE_ROWS"
        )
    number = 0
    for group in range(n_groups):
        first: int | None = 0
        while first is not None:
            request = {"group": group, "first": first, "most_bytes": _REPLY_BYTES}
            reply = _run_task("rows", path, request)
            for line in reply.blobs[0].splitlines():
                number += 1
                if len(line) > ROW_BYTES:
                    problem = f"a row of more than {ROW_BYTES} bytes"
                    raise UnreadableSourceError(str(path), problem, "Shorten its cells")
                try:
                    row = parse_json(line)
                except InvalidValueError as error:
                    row = Rejected(f"row {number}", str(error))
                if not isinstance(row, dict | Rejected):
                    row = Rejected(f"row {number}", "the cells cannot be read. Correct them")
                yield row
            following = reply.header["next"]
            if following is not None and not (isinstance(following, int) and following > first):
                raise UnreadableSourceError(str(path), "the rows do not advance", _REMEDY)
            first = following


_REMEDY = "Check the path, or write the table again"


def _read_shape(path: Path) -> tuple[tuple[str, ...], int, int]:
    """Return the names of the columns, and the numbers of rows and of row groups."""
    reply = _run_task("shape", path, {})
    names = tuple(map(str, json.loads(reply.blobs[0])))
    return names, int(reply.header["n_rows"]), int(reply.header["n_groups"])


def _run_task(task: str, path: Path, request: Mapping[str, Any]) -> TaskReplyPayload:
    if find_spec("pyarrow") is None or find_spec("pyarrow.parquet") is None:
        raise MissingExtraError("pyarrow", "eval")
    reply = _open_table_sandbox()(task, path.resolve(), request)
    if not isinstance(reply, Failure):
        return reply
    if reply.reason in _BEYOND_LIMITS:
        raise UnreadableSourceError(
            str(path),
            f"the rows need more than {LIMITS.memory_mb} MiB or {LIMITS.seconds:g} s",
            "Write it again with shorter cells, or split it",
        )
    raise UnreadableSourceError(str(path), f"not a Parquet file: {reply.detail}", _REMEDY)


@cache
def _open_table_sandbox() -> FileSandbox:
    """Return the sandbox of this process for tables; its processes end with this one."""
    return FileSandbox(
        LIMITS,
        tasks="unreel.benchmarks.parquet_task:TASKS",
        needs=("shape", "rows"),
        without_seccomp=bool(read_environment_settings().media_without_seccomp),
    )


DELIMITERS = {".csv": ",", ".tsv": "\t"}
TABLE_SUFFIXES = (*DELIMITERS, ".jsonl", ".parquet")

Cells = Mapping[str, object]


def read_table_rows(path: Path) -> Iterator[Cells | Rejected]:
    """Return the rows of `path` in order; a damaged row is a `Rejected` named after its row number.

    Raise `UnreadableSourceError` if the file is not a table, has a row that is too large, or has
    too many rows.
    """
    match path.suffix.lower():
        case ".csv" | ".tsv":
            return _iter_nonblank_rows(path, _read_csv_rows(path))
        case ".jsonl":
            return _iter_nonblank_rows(path, _read_jsonl_rows(path))
        case ".parquet":
            return _iter_nonblank_rows(path, read_parquet_rows(path))
        case _:
            raise UnreadableSourceError(
                str(path), "not a table", f"Give one of {', '.join(TABLE_SUFFIXES)}"
            )


def read_table_column_names(path: Path) -> tuple[str, ...]:
    """Return the column names of `path`; in JSONL, the keys of the first valid row."""
    match path.suffix.lower():
        case ".csv" | ".tsv":
            with _open_text(path) as file:
                return _read_csv_header(path, _build_csv_reader(path, _BoundedLines(path, file)))
        case ".parquet":
            return read_parquet_column_names(path)
        case _:
            rows = read_table_rows(path)
            return next((tuple(row) for row in rows if not isinstance(row, Rejected)), ())


def _iter_nonblank_rows(
    path: Path, rows: Iterable[Cells | Rejected | None]
) -> Iterator[Cells | Rejected]:
    """Yield `rows` without blank rows; blank rows count towards the row limit."""
    max_rows = read_environment_settings().table_rows
    for number, row in enumerate(rows, start=1):
        if number > max_rows:
            raise UnreadableSourceError(
                str(path), f"more than {max_rows} rows", "Split it, or raise UNREEL_TABLE_ROWS"
            )
        if row is not None:
            yield row


def _read_csv_rows(path: Path) -> Iterator[Cells | Rejected | None]:
    with _open_text(path) as file:
        lines = _BoundedLines(path, file)
        reader = _build_csv_reader(path, lines)
        columns = _read_csv_header(path, reader)
        number = 1
        while True:
            lines.begin_row()
            number += 1
            try:
                cells = next(reader, None)
            except csv.Error as error:
                yield Rejected(f"row {number}", f"not CSV: {error}. Check the quotes of this row")
                continue
            if cells is None:
                return
            if len(cells) > len(columns):
                reason = f"{len(cells)} cells under {len(columns)} columns. Quote cells with commas"
                yield Rejected(f"row {number}", reason)
            else:
                yield dict(zip_longest(columns, cells)) if cells else None


def _build_csv_reader(path: Path, lines: Iterator[str]) -> Iterator[list[str]]:
    return csv.reader(lines, delimiter=DELIMITERS[path.suffix.lower()])


class _BoundedLines:
    """Lines of a text file, with a size limit for each row."""

    def __init__(self, path: Path, file: Any) -> None:
        self._path, self._file = path, file
        self._left = ROW_BYTES

    def begin_row(self) -> None:
        """Reset the size limit at the start of a row."""
        self._left = ROW_BYTES

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line: str = self._file.readline(self._left + 1)
        if not line:
            raise StopIteration
        self._left -= len(line)
        if self._left < 0:
            raise _build_long_row_error(self._path)
        return line


def _build_long_row_error(path: Path) -> UnreadableSourceError:
    remedy = "Check its quotes and line ends, or shorten its cells"
    return UnreadableSourceError(str(path), f"a row of more than {ROW_BYTES} bytes", remedy)


def _read_jsonl_rows(path: Path) -> Iterator[Cells | Rejected | None]:
    with _open_binary(path) as file:
        number = 0
        while line := file.readline(ROW_BYTES + 1):
            number += 1
            if len(line) > ROW_BYTES:
                raise _build_long_row_error(path)
            if not line.strip():
                yield None
                continue
            try:
                row = parse_json(line)
            except InvalidValueError:
                reason = "not a line of JSON in UTF-8. Write one object on each line"
                yield Rejected(f"row {number}", reason)
                continue
            if isinstance(row, dict):
                yield row
            else:
                yield Rejected(f"row {number}", "not an object. Write one object on each line")


def _read_csv_header(path: Path, reader: Iterator[list[str]]) -> tuple[str, ...]:
    try:
        columns = tuple(cell.strip() for cell in next(reader, None) or ())
    except csv.Error as error:
        raise UnreadableSourceError(
            str(path), f"no CSV header: {error}", "Write the column names in the first row"
        ) from error
    if not any(columns):
        raise UnreadableSourceError(
            str(path), "no header", "Write the column names in the first row"
        )
    if len(columns) == 1 and (between := set(columns[0]) & set(",;\t")):
        raise UnreadableSourceError(
            str(path),
            f"the first row is one cell, {columns[0][:CELL_SHOWN]!r}",
            f"Put {'tabs' if path.suffix.lower() == '.tsv' else 'commas'} in place of {min(between)!r}",
        )
    if len(columns) > COLUMNS:
        raise UnreadableSourceError(
            str(path),
            f"more than {COLUMNS} columns",
            "Check that its first row contains the column names",
        )
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        raise UnreadableSourceError(
            str(path), f"column {twice!r} occurs twice", "Rename one of them"
        )
    return columns


def _open_text(path: Path) -> Any:
    with _open_binary(path) as file:
        start = file.read(2)
    if start in {b"\xff\xfe", b"\xfe\xff"}:
        raise UnreadableSourceError(str(path), "the text is UTF-16", "Save the table as UTF-8")
    # Bytes that are not UTF-8 become lone surrogates, which the parsers of `cells` reject by row.
    return path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")


def _open_binary(path: Path) -> Any:
    try:
        return path.open("rb")
    except OSError as error:
        raise UnreadableSourceError(
            str(path), error.strerror or "unreadable", "Check the path and that you may read it"
        ) from error
