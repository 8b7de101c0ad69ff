"""Lance tables with one row for a key: what readers see, and what the one committer may do.

A failure that is asked again *replaces* its row: the old row goes and the new one comes in the same
commit, so a reader of any version, in any tool, sees one row for a key and `attempt` says which try
it was. Keeping all tries and letting the latest win was the alternative; it would double keys for
everyone who opens the table without unreel.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import lance
import pyarrow as pa
from lance.fragment import write_fragments
from lance.optimize import Compaction, CompactionOptions
from obstore.exceptions import BaseError

from unreel.core.errors import (
    GO_ON,
    UnreadableSourceError,
    UnreelError,
    raise_refusal,
    words_of,
)
from unreel.core.names import read_clip_id
from unreel.engine import seal
from unreel.engine.keys import FRUGAL, doubled_keys
from unreel.engine.lock import WriterLock
from unreel.engine.place import Place
from unreel.engine.schema import TableSchema
from unreel.engine.stage import Row

FRAGMENT_ROWS: Final = 8_192
"""Compaction leaves fragments of this size alone, so a row is rewritten a bounded number of times."""

_CACHE_BYTES: Final = 4 * 2**20
"""By default Lance keeps up to a gigabyte of manifests of versions that nobody reads again."""

_BATCH_BYTES: Final = 256 << 20
"""A batch of 1,024 answers, the longest of which have half a megabyte, stays below."""

_IDS: Final = ("clip", "second")
"""Columns that hold ids of clips, in every kind of table that has them; empty where none is known."""

"""Lance's words, in a `ValueError`, for a data set that does not exist; all else is about one that may."""

_FILE: Final = re.compile(r"_versions/\d+\.manifest|data/[^/]+\.lance")
"""What a commit leaves; a transaction without them belongs to one that never came to pass."""


KEEP_VERSIONS: Final = timedelta(hours=1)
"""A reader may go on with the version it opened for this long."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a table already holds for a key."""

    attempt: int
    reason: str | None
    """Why it failed; `None` for an answer."""
    mark: str | None = None
    """What it is about, where its key alone does not tell."""

    def is_due(self, row: Row, retry: Collection[str]) -> bool:
        """Whether `row` is to be done again: it failed for a reason in `retry`, or has a new mark."""
        return self.reason in retry or row.get("mark", self.mark) != self.mark


class _AbsentTableError(UnreadableSourceError):
    """There is no table, as opposed to one that something else wrote."""


class Table:
    """The table at `place`, read as of the moment of each call."""

    def __init__(self, place: Place, schema: TableSchema) -> None:
        self.place = place
        self.schema = schema

    def exists(self) -> bool:
        """Whether anything was ever committed here."""
        return self._find() is not None

    def count(self, where: str | None = None) -> int:
        """How many rows there are, or how many fulfil `where`."""
        dataset = self._find()
        with self.reading():
            return 0 if dataset is None else int(dataset.count_rows(where))

    def failures(self) -> Counter[str]:
        """Failed rows by reason."""
        tally: Counter[str] = Counter()
        dataset = self._find()
        if dataset is not None:
            where = "failure_reason IS NOT NULL"
            for batch in self._scan(dataset, columns=["failure_reason"], filter=where):
                tally.update(batch.column("failure_reason").to_pylist())
        return tally

    def rows(self, columns: Sequence[str] | None = None, where: str | None = None) -> Iterator[Row]:
        """Every row, upgraded to this release, streamed; a doubled key is an error.

        `columns` of another version's row may not exist in this one: name them only in code that
        knows the schema. `where` is a filter in Lance's SQL.

        Raises:
            UnreadableSourceError: There is no table, it is damaged, or a key is in it twice.
        """
        dataset = self.open()
        self._require_unique_keys(dataset)
        wanted = None if columns is None else [*{"key", "row_version", *columns}]
        for batch in self._scan(dataset, columns=wanted, filter=where, batch_size=1024):
            for row in self._rows_of(batch):
                whole = self._whole(row)
                yield whole if columns is None else {name: whole[name] for name in columns}

    def held(self, keys: Sequence[str]) -> Mapping[str, Held]:
        """What is there for each of `keys`; a key without a row is left out."""
        found = self._look_up(keys, columns=["key", "attempt", "failure_reason", "mark"])
        return {
            row["key"]: Held(row["attempt"], row["failure_reason"], row.get("mark"))
            for row in found
        }

    def get(self, keys: Sequence[str]) -> list[Row]:
        """The whole rows of `keys`, in any order; a key without a row is left out."""
        return [self._whole(row) for row in self._look_up(keys, columns=None)]

    def _rows_of(self, batch: Any) -> list[Row]:
        """The rows of `batch`; cells beyond all measure are refused before they become objects."""
        if batch.nbytes > _BATCH_BYTES:
            problem = f"{batch.num_rows} of its rows take up {batch.nbytes} bytes"
            remedy = "Something else wrote this table: name another, or make it again"
            raise UnreadableSourceError(self.place.uri, problem, remedy)
        try:
            rows: list[Row] = batch.to_pylist()
        except ValueError as error:
            problem, remedy = f"a cell cannot be read: {error}", "Make the table again"
            raise UnreadableSourceError(self.place.uri, problem, remedy) from error
        return rows

    def _whole(self, row: Row) -> Row:
        """The row as this release knows it; one that was changed, or with an id that is none, is refused."""
        if seal.is_broken(row):
            problem = f"the row {row['key']} was changed after it was written"
            raise self._damaged(problem)
        row.pop(seal.COLUMN, None)
        for name in _IDS:
            if row.get(name):
                read_clip_id(row[name], self.place.uri)
        return self.schema.upgrade(row)

    def _look_up(self, keys: Sequence[str], *, columns: list[str] | None) -> list[Row]:
        dataset = self._find() if keys else None
        if dataset is None:
            return []
        if columns is not None:
            columns = [name for name in columns if name in dataset.schema.names]
        quoted = ",".join("'" + key.replace("'", "''") + "'" for key in keys)
        scan = self._scan(dataset, columns=columns, filter=f"key IN ({quoted})", **FRUGAL)
        return [row for batch in scan for row in self._rows_of(batch)]

    def check(self) -> None:
        """Raise when a key is in the table twice, or a row is of a later release."""
        dataset = self._find()
        if dataset is not None:
            self._require_unique_keys(dataset)
            where = f"row_version > {self.schema.version}"
            for batch in self._scan(dataset, columns=["row_version"], filter=where, limit=1):
                for row in batch.to_pylist():
                    self.schema.upgrade(row)

    def open(self, version: int | None = None) -> Any:
        """The Lance data set behind the table, at its latest version or at another.

        Raises:
            UnreadableSourceError: There is no table, or it is damaged.
        """
        self.place.require_plain()
        try:
            dataset = lance.dataset(
                self.place.uri,
                version=version,
                storage_options=self.place.storage_options,
                index_cache_size_bytes=_CACHE_BYTES,
                metadata_cache_size_bytes=_CACHE_BYTES,
            )
        except (ValueError, OSError, RuntimeError) as error:
            raise_refusal(error)
            if self.files():
                raise self._damaged(error) from error
            remedy = "Check the path; a run writes it with its first commit"
            raise _AbsentTableError(
                self.place.uri, f"no {self.schema.name} table: {error}", remedy
            ) from error
        self.schema.require(dataset.schema, self.place.uri)
        return dataset

    def files(self) -> list[str]:
        """The manifests and data files that lie there, by path below the table."""
        with self.reading():
            return [name for name in self.place.names() if _FILE.fullmatch(name)]

    def _find(self) -> Any:
        """The data set, or None where nothing was ever committed; a damaged one is no absent one."""
        try:
            return self.open()
        except _AbsentTableError:
            return None

    def _scan(self, dataset: Any, **options: Any) -> Iterator[Any]:
        with self.reading():
            yield from dataset.scanner(**options).to_batches()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Whatever Lance, Arrow or the store says about unreadable files becomes one error."""
        try:
            yield
        except UnreelError:
            raise
        except (BaseError, OSError, ValueError, RuntimeError) as error:
            raise_refusal(error)
            raise self._damaged(error) from error

    def _damaged(self, problem: object) -> UnreadableSourceError:
        folder = self.place.uri.rpartition("/")[0] or "."
        remedy = f"See what is left with `unreel runs check {folder}`"
        if not self.place.is_local:
            remedy = f"{GO_ON}. If it stays so, try `unreel doctor --store {folder}`. {remedy}"
        return UnreadableSourceError(self.place.uri, f"cannot be read: {words_of(problem)}", remedy)

    def _require_unique_keys(self, dataset: Any) -> None:
        with self.reading():
            doubled = doubled_keys(dataset)
        if doubled:
            problem = f"{len(doubled)} keys are in it more than once, the first is {doubled[0]}"
            folder = self.place.uri.rpartition("/")[0] or "."
            remedy = (
                "Something else wrote this table. Keep one row of each with "
                f"`unreel runs repair {folder}`"
            )
            raise UnreadableSourceError(self.place.uri, problem, remedy)


class TableWriter:
    """Changes one table, by one thread of the process that holds its lock; each change is one commit.

    Args:
        table: The table; it is created when it does not exist, and widened when this release knows
            columns that it has not.
        lock: Held by the caller; looked at before each commit.
        observe: Told `written` when new data lies in the store and `committed` when readers see it,
            with a count of rows; `rewritten` and `compacted` likewise, with a count of fragments.
    """

    def __init__(
        self, table: Table, *, lock: WriterLock, observe: Callable[[str, int], None]
    ) -> None:
        self._table = table
        self._lock = lock
        self._observe = observe
        self._dataset = self._prepare()
        self._began = datetime.now(UTC), time.monotonic()

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows whose keys are not in the table."""
        batch = self._table.schema.batch(rows)
        data = pa.Table.from_batches([batch])
        fragments = write_fragments(data, self._dataset, schema=self._dataset.schema)
        self._commit(lance.LanceOperation.Append(fragments), len(rows))

    def replace(self, rows: Sequence[Row]) -> None:
        """Put rows in the place of those with their keys: out and in, in one commit."""
        batch = self._table.schema.batch(rows)
        merge = self._dataset.merge_insert("key")
        merge = merge.when_matched_update_all().when_not_matched_insert_all()
        transaction, _ = merge.execute_uncommitted(pa.Table.from_batches([batch]))
        self._commit(transaction, len(rows))

    def compact(self, *, keep: timedelta = KEEP_VERSIONS) -> None:
        """Join small fragments and let go of versions older than `keep`."""
        plan = Compaction.plan(
            self._dataset,
            CompactionOptions(
                target_rows_per_fragment=FRAGMENT_ROWS, num_threads=1, batch_size=1024
            ),
        )
        with self._table.reading():
            rewrites = [task.execute(self._dataset) for task in plan.tasks]
        n_rewritten = sum(rewrite.metrics.fragments_removed for rewrite in rewrites)
        self._observe("rewritten", n_rewritten)
        self._lock.verify()
        if rewrites:
            Compaction.commit(self._dataset, rewrites)
        self._observe("compacted", n_rewritten)
        # Data without a manifest is what a killed committer left: only the holder of the lock writes.
        # Rewriting may have taken longer than a lease lasts, and this would delete the next one's.
        self._lock.verify()
        older_than = keep + self._set_forward()
        self._dataset.cleanup_old_versions(older_than=older_than, delete_unverified=True)
        self._dataset.checkout_latest()

    def _set_forward(self) -> timedelta:
        """By how much the clock was set forward: Lance would take young versions for old ones."""
        began, began_s = self._began
        passed = timedelta(seconds=time.monotonic() - began_s)
        return max(timedelta(), datetime.now(UTC) - began - passed)

    def mend(self) -> int:
        """Keep one row of each doubled key, an answer before a failure; how many rows went."""
        doubled = set(doubled_keys(self._dataset))
        if not doubled:
            return 0
        columns = ["key", "attempt", "failure_reason"]
        kept: dict[str, tuple[bool, int, int]] = {}
        seen: list[int] = []
        for batch in self._dataset.scanner(columns=columns, with_row_id=True).to_batches():
            for row in batch.to_pylist():
                if row["key"] in doubled:
                    seen.append(row["_rowid"])
                    rank = (row["failure_reason"] is None, row["attempt"], -row["_rowid"])
                    kept[row["key"]] = max(rank, kept.get(row["key"], rank))
        gone = set(seen) - {-rank[2] for rank in kept.values()}
        self._lock.verify()
        self._dataset.delete(f"_rowid IN ({','.join(map(str, sorted(gone)))})")
        return len(gone)

    def _commit(self, operation: Any, n_rows: int) -> None:
        self._observe("written", n_rows)
        self._lock.verify()
        before = self._dataset.version
        if self._dataset.latest_version == before:
            self._dataset = lance.LanceDataset.commit(self._dataset, operation, read_version=before)
        # Lance lets two appends both win, so a foreign version is the only sign of a second writer.
        if self._dataset.version != before + 1:
            problem = "something else committed to it during this run"
            remedy = "End the other writer and run again: nothing that was committed is asked twice"
            raise UnreadableSourceError(self._table.place.uri, problem, remedy)
        self._observe("committed", n_rows)

    def _prepare(self) -> Any:
        place, schema = self._table.place, self._table.schema
        if place.is_local:
            # Lance goes where links lead, and removes what it takes for leftovers there.
            folder, name = place.inside()
            folder.make(name)
            place.require_plain(whole=True)
        if not self._table.exists():
            empty = schema.arrow.empty_table()
            lance.write_dataset(empty, place.uri, storage_options=place.storage_options)
        dataset = self._table.open()
        missing = [field for field in schema.arrow if field.name not in dataset.schema.names]
        if missing:
            dataset.add_columns(
                pa.schema([field.with_nullable(nullable=True) for field in missing])
            )
        return dataset
