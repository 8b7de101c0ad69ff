"""Table as a source of questions: the driver reads the key columns, workers read the rows.

The driver reads the few columns that a question's key needs, finds the due questions, and sends
a row address of eight bytes for each. The worker opens the table at the same version and builds
the question. So a hundred million rows never pass through one process.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from unreel.core.chunks import iter_chunks
from unreel.core.errors import raise_if_machine_error
from unreel.engine.stage import (
    Row,
    convert_error_to_failure,
    convert_to_failed_row,
    drop_scratch_columns,
)

if TYPE_CHECKING:
    from unreel.engine.table import LanceTable

_AT = "_at"
"""Scratch column with the row address of a question that is not loaded yet."""
_SCANNED = 8_192
_FETCHED = 256


def _get_row_key(row: Row) -> str:
    key: str = row["key"]
    return key


class TableQuestionSource:
    """Rows of `table` as questions for `run_pending_questions`, in the order of the table.

    `ask` builds the question from a complete row, in the worker; it must pickle, and the key that
    it builds is ignored. `key` builds the question's key from a row with only `columns`, in the
    driver. `where` is a row filter in Lance's SQL.
    """

    def __init__(
        self,
        table: "LanceTable",
        ask: Callable[[Row], Row],
        *,
        key: Callable[[Row], str] = _get_row_key,
        columns: Sequence[str] = ("key",),
        where: str = "failure_reason IS NULL",
    ) -> None:
        self._table, self._ask = table, ask
        self._key, self._columns, self._where = key, list(columns), where
        self._dataset: Any = None

    def __iter__(self) -> Iterator[Row]:
        """Yield each question as a key and a row address; `DueTableQuestions` loads the complete question."""
        batches = self._table.scan(
            self._open(),
            columns=self._columns,
            filter=self._where,
            with_row_id=True,
            batch_size=_SCANNED,
            batch_readahead=2,
            fragment_readahead=2,
        )
        for batch in batches:
            for row in batch.to_pylist():
                yield {"key": self._key(row), _AT: row["_rowid"]}

    def fetch(self) -> "TableQuestionLoader":
        """Return the function that loads complete questions of this table in a worker."""
        return TableQuestionLoader(self._table, self._open().version, self._ask)

    def _open(self) -> Any:
        if self._dataset is None:
            self._table.check()
            self._dataset = self._table.open()
        return self._dataset


class TableQuestionLoader:
    """Callable that builds questions from row addresses in batches; pickled without its dataset."""

    def __init__(self, table: "LanceTable", version: int, ask: Callable[[Row], Row]) -> None:
        self._table, self._version, self._ask = table, version, ask
        self._dataset: Any = None

    def __call__(self, rows: Sequence[Row]) -> list[Row]:
        """Return the complete questions, in order; a question that cannot be built is a failure row.

        Raise `UnreadableSourceError` if the version of the table is missing or damaged.
        """
        if self._dataset is None:
            self._dataset = self._table.open(self._version)
        sources = self._table.at(self._dataset, [row[_AT] for row in rows])
        return [self._made(row, source) for row, source in zip(rows, sources, strict=True)]

    def _made(self, row: Row, source: Row) -> Row:
        try:
            return self._ask(source) | drop_scratch_columns(row)
        except Exception as error:  # noqa: BLE001  a failed item is a row, whatever it raised
            raise_if_machine_error(error)
            return convert_to_failed_row(row, convert_error_to_failure(error))

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_dataset": None}


class DueTableQuestions:
    """Questions of a table that still need an answer; their rows are loaded on iteration.

    The Ray runner sends each worker `fetch` once and then `addresses` only.
    """

    def __init__(self, addresses: Iterable[Row], source: TableQuestionSource) -> None:
        self.addresses = addresses
        self._source = source

    def __iter__(self) -> Iterator[Row]:
        fetch = self._source.fetch()
        for chunk in iter_chunks(self.addresses, _FETCHED):
            yield from fetch(chunk)

    def fetch(self) -> TableQuestionLoader:
        """Return the function that loads the complete questions."""
        return self._source.fetch()
