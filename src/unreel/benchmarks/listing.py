"""Benchmarks that are one table: a row for each clip, media next to the table or behind URLs."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from unreel.benchmarks.columns import bind
from unreel.benchmarks.entry import Row
from unreel.benchmarks.records import read_record
from unreel.benchmarks.tables import read_column_names, read_table
from unreel.core.errors import UnreadableSourceError


def read_list(
    table: Path, mapping: Mapping[str, str] | None = None, *, outside: bool = False
) -> Iterator[Row]:
    """Yield an entry or a rejection for each row of a CSV, TSV, JSONL or Parquet table, as a stream.

    A location column and a label column are required. A label is `real`, `generated` or `fake`, or
    0 or 1 in the column `is_fake`. All other columns of `unreel.benchmarks.columns.KNOWN` are read
    if present. `mapping` gives the column of a field that has another name. Paths are relative to
    the table's directory, and may lead outside it only if `outside` is true.
    """
    binding = bind(str(table), read_column_names(table), mapping, outside=outside)
    for field in ("location", "label"):
        if field not in binding and not (field == "label" and binding.tells_label):
            remedy = f"Name it with a mapping: {field}=COLUMN"
            raise UnreadableSourceError(str(table), f"no column holds the {field}", remedy)
    for number, row in enumerate(read_table(table), start=1):
        yield read_record(row, binding, number=number)
