"""Salvage of a damaged table: its intact rows are copied to a new table; the old one is only read."""

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from unreel.core.chunks import iter_chunks
from unreel.engine.key_index import hash_key_to_int
from unreel.engine.schema import SEAL_COLUMN, TableSchema
from unreel.engine.stage import Row, is_failed_row
from unreel.engine.table import LanceTable
from unreel.engine.table_check import (
    FragmentCheckResult,
    Judge,
    Piece,
    TableChecker,
    TableCheckResult,
    find_row_fault,
    iter_fragment_rows,
)
from unreel.engine.table_writer import TableWriter
from unreel.engine.writer_lock import build_writer_lock

_COMMIT_ROWS: Final = 8_192
SetAside = Callable[[Row, str], None]
"""Callback with each invalid row and its error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSalvageResult:
    """Result of the salvage of a damaged table: numbers of kept, unreadable and excluded rows."""

    kept: int
    """Number of rows of the new table."""
    found_again: int
    """Number of these rows that were found in files which the damaged table no longer referenced."""
    unreadable: int
    """Number of rows in unreadable files, as far as known."""
    set_aside: int
    """Number of invalid rows, which were passed to the `set_aside` callback."""
    doubled: int
    """Number of rows that were removed because another row has the same key."""


def salvage_table(
    check: TableCheckResult,
    into: LanceTable,
    *,
    examiner: TableChecker,
    judge: Judge,
    set_aside: SetAside,
) -> TableSalvageResult:
    """Copy the intact rows of the table checked by `check` to the new table `into`.

    Of two rows with one key an answer is preferred to a failure, then the later attempt. Data files
    that no version references (after a lost manifest or a killed run) are searched for answers with
    a missing key. Only rows with a valid seal are taken from them.
    """
    readable = [fragment for fragment, how in check.pieces if isinstance(how, FragmentCheckResult)]
    rescue = _SalvagedRowReader(check.table, judge, set_aside)
    with build_writer_lock(into.place) as lock:
        writer = TableWriter(into, lock=lock, observe=lambda _step, _rows: None)
        _append_rows(writer, into.schema, rescue.right(readable))
        doubled = writer.mend()
        loose = (
            file
            for file in check.loose
            if isinstance(examiner.read(check.table, file, judge), FragmentCheckResult)
        )
        _append_rows(writer, into.schema, rescue.missing(loose))
        writer.join()
    return TableSalvageResult(
        kept=into.count(),
        found_again=len(rescue.found_again),
        unreadable=sum(fragment.n_rows for fragment, _ in check.unreadable),
        set_aside=rescue.n_set_aside,
        doubled=doubled,
    )


class _SalvagedRowReader:
    def __init__(self, table: LanceTable, judge: Judge, set_aside: SetAside) -> None:
        self._table, self._judge, self._set_aside = table, judge, set_aside
        self._kept = array("Q")
        self.n_set_aside = 0
        self.found_again: set[int] = set()

    def right(self, pieces: Iterable[Piece]) -> Iterator[Row]:
        """Yield the valid rows of the fragments `pieces`; pass invalid rows to the `set_aside` callback."""
        for row in self._rows(pieces):
            fault = find_row_fault(row, self._table, self._judge)
            if fault is None:
                self._kept.append(hash_key_to_int(row["key"]))
                yield self._ours(row)
            else:
                self.n_set_aside += 1
                self._set_aside(row, fault)

    def missing(self, pieces: Iterable[Piece]) -> Iterator[Row]:
        """Yield valid answers whose key was not kept yet; skip failures, which may have been retried since."""
        known = np.sort(np.array(self._kept, dtype=np.uint64))
        for row in self._rows(pieces):
            mark = hash_key_to_int(row["key"])
            at = int(np.searchsorted(known, np.uint64(mark)))
            is_stored = mark in self.found_again or (at < len(known) and int(known[at]) == mark)
            if is_stored or is_failed_row(row) or row.get(SEAL_COLUMN) is None:
                continue
            if find_row_fault(row, self._table, self._judge) is None:
                self.found_again.add(mark)
                yield self._ours(row)

    def _rows(self, pieces: Iterable[Piece]) -> Iterator[Row]:
        for piece in pieces:
            yield from iter_fragment_rows(self._table, piece)

    def _ours(self, row: Row) -> Row:
        columns = set(self._table.schema.arrow.names) - {SEAL_COLUMN}
        return {
            name: value
            for name, value in self._table.schema.upgrade(row).items()
            if name in columns
        }


def _append_rows(writer: TableWriter, schema: TableSchema, rows: Iterator[Row]) -> None:
    for chunk in iter_chunks(rows, _COMMIT_ROWS):
        for portion in schema.portions(chunk):
            writer.append(portion)
