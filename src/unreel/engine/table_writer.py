"""Writer of a Lance table with one row per key, used by the single committer of a run.

A retried failure *replaces* its row: one commit removes the old row and adds the new row. So a
reader of any version, in any tool, sees one row per key, and `attempt` is the attempt number.
The alternative, to keep all attempts and use the latest, would give duplicate keys to everyone
who opens the table without unreel.
"""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import lance
import pyarrow as pa
from lance.fragment import write_fragments
from lance.optimize import Compaction, CompactionOptions

from unreel.core.chunks import SCAN_ROWS
from unreel.core.errors import UnreadableSourceError
from unreel.engine.stage import Row
from unreel.engine.table import LanceTable
from unreel.engine.writer_lock import WriterLock

FULL_ROWS = 2**20
FULL_BYTES = 2**28
"""Size from which a fragment is full, reached first by long texts: joining takes as much time and memory."""
_MAX_DELETED = 0.1
"""Fraction of replaced rows above which a fragment is rewritten without them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFragment:
    """One fragment of a Lance table as its manifest describes it: id and numbers of rows."""

    id: int
    rows: int
    """Number of rows that are not deleted."""
    gone: int = 0
    """Number of replaced rows that are still in its file."""
    n_bytes: int = 0

    @property
    def is_full(self) -> bool:
        """Return whether the fragment is so large that it is not joined with others."""
        return self.rows >= FULL_ROWS or self.n_bytes >= FULL_BYTES


def find_fragments_to_join(
    fragments: Sequence[TableFragment], *, growth: int, min_fragments: int = 2
) -> list[list[TableFragment]]:
    """Return lists of neighbours to join, from `min_fragments` on; a single one is rewritten without old rows."""
    joins: list[list[TableFragment]] = []
    for full, run in itertools.groupby(fragments, key=lambda fragment: fragment.is_full):
        neighbours = list(run)
        if len(neighbours) < min_fragments and not full:
            continue
        tail: list[TableFragment] = []
        younger = sum(fragment.rows for fragment in neighbours)
        for i, fragment in enumerate([] if full else neighbours[:-1]):
            younger -= fragment.rows
            if younger >= (growth - 1) * fragment.rows:
                tail = neighbours[i:]
                break
        groups: list[list[TableFragment]] = []
        free_rows, free_bytes = 0, 0
        for fragment in tail:
            if free_rows <= 0 or free_bytes <= 0:
                groups.append([])
                free_rows, free_bytes = FULL_ROWS, FULL_BYTES
            groups[-1].append(fragment)
            free_rows -= fragment.rows
            free_bytes -= fragment.n_bytes
        joins += [group for group in groups if len(group) > 1]
        untouched = neighbours[: len(neighbours) - len(tail)]
        joins += [[f] for f in untouched if f.gone > _MAX_DELETED * (f.rows + f.gone)]
    return joins


KEEP_VERSIONS = timedelta(hours=1)
"""Time for which old versions are kept, so that readers can continue with the version they opened."""

_READ_AHEAD_BYTES = 64 * 2**20
"""Size of Lance's read-ahead during compaction, which is two gigabytes by default."""
_GROWTH_AT_WORK = 8
_GROWTH_AT_REST = 2
"""Minimum growth of the oldest fragment by a join after a run; larger during a run, to copy rows less often."""


class TableWriter:
    """Writer of one table, in one thread of the process that holds its lock; each change is one commit.

    `observe` is called with `written` when new data are in the store and `committed` when readers
    see them, with a count of rows; with `rewritten` and `compacted` with a count of fragments.
    """

    def __init__(
        self, table: LanceTable, *, lock: WriterLock, observe: Callable[[str, int], None]
    ) -> None:
        self._table = table
        self._lock = lock
        self._observe = observe
        self._dataset = self._prepare()
        self._began = datetime.now(UTC), time.monotonic()

    def append(self, rows: Sequence[Row]) -> None:
        """Add `rows` to the table; their keys must not be in it."""
        self.add([self._table.schema.batch(rows)])

    def add(self, batches: Sequence[Any]) -> None:
        """Add the rows of `batches`, whose keys are not in the table, in one commit."""
        data = pa.Table.from_batches(batches)
        fragments = write_fragments(data, self._dataset, schema=self._dataset.schema)
        self._commit(lance.LanceOperation.Append(fragments), data.num_rows)

    def replace(self, batches: Sequence[Any]) -> None:
        """Replace the rows that have the keys of `batches`, in one commit."""
        data = pa.Table.from_batches(batches)
        merge = self._dataset.merge_insert("key")
        merge = merge.when_matched_update_all().when_not_matched_insert_all()
        transaction, _ = merge.execute_uncommitted(data)
        self._commit(transaction, data.num_rows)

    def join(self, *, growth: int = _GROWTH_AT_WORK, min_fragments: int = 2) -> None:
        """Join the fragments that `find_fragments_to_join` returns."""
        fragments = [
            TableFragment(
                id=f.id,
                rows=f.num_rows,
                gone=f.physical_rows - f.num_rows,
                n_bytes=sum(file.file_size_bytes or 0 for file in f.files),
            )
            for f in (fragment.metadata for fragment in self._dataset.get_fragments())
        ]
        joins = find_fragments_to_join(fragments, growth=growth, min_fragments=min_fragments)
        if not joins:
            return
        with self._table.reading():
            tasks = [task for joined in joins for task in self._plan(joined)]
            rewrites = [task.execute(self._dataset) for task in tasks]
        n_rewritten = sum(rewrite.metrics.fragments_removed for rewrite in rewrites)
        self._observe("rewritten", n_rewritten)
        self._lock.verify()
        before = self._dataset.version
        if self._dataset.latest_version == before:
            Compaction.commit(self._dataset, rewrites)
        # One version reserves ids for the new fragments, and the next one contains them.
        if self._dataset.version not in {before + 1, before + 2}:
            raise self._not_alone()
        self._observe("compacted", n_rewritten)

    def compact(self, *, keep: timedelta = KEEP_VERSIONS) -> None:
        """Join fragments into few, and delete versions older than `keep`."""
        self.join(growth=_GROWTH_AT_REST)
        self.let_go(keep=keep)

    def let_go(self, *, keep: timedelta = KEEP_VERSIONS) -> None:
        """Delete versions of the table older than `keep`, and files that no version references."""
        # Data without a manifest is from a killed committer, because only the lock's holder writes.
        # Rewriting may have outlasted the lease, and this would delete data of the next holder.
        self._lock.verify()
        # If the system clock was set forward, Lance would treat new versions as old.
        began, began_s = self._began
        passed = timedelta(seconds=time.monotonic() - began_s)
        older_than = keep + max(timedelta(), datetime.now(UTC) - began - passed)
        self._dataset.cleanup_old_versions(older_than=older_than, delete_unverified=True)
        self._dataset.checkout_latest()

    def _plan(self, fragments: list[TableFragment]) -> list[Any]:
        ids = {fragment.id for fragment in fragments}
        others = [number for number in self._dataset.fragment_ids() if number not in ids]
        options = CompactionOptions(
            target_rows_per_fragment=sum(fragment.rows + fragment.gone for fragment in fragments),
            excluded_fragment_ids=others,
            num_threads=1,
            batch_size=SCAN_ROWS,
            io_buffer_size=_READ_AHEAD_BYTES,
        )
        return list(Compaction.plan(self._dataset, options).tasks)

    def _commit(self, operation: Any, n_rows: int) -> None:
        self._observe("written", n_rows)
        self._lock.verify()
        before = self._dataset.version
        if self._dataset.latest_version == before:
            self._dataset = lance.LanceDataset.commit(self._dataset, operation, read_version=before)
        # Lance accepts two concurrent appends, so only a foreign version reveals a second writer.
        if self._dataset.version != before + 1:
            raise self._not_alone()
        self._observe("committed", n_rows)

    def _not_alone(self) -> UnreadableSourceError:
        problem = "something else committed to it during this run"
        remedy = "End the other writer and run again: nothing that was committed is asked twice"
        return UnreadableSourceError(self._table.place.uri, problem, remedy)

    def _prepare(self) -> Any:
        location, schema = self._table.place, self._table.schema
        if location.is_local:
            # Lance follows symbolic links, and deletes files there that it takes for leftovers.
            folder, name = location.inside()
            folder.make(name)
            location.require_plain(whole=True)
        if not self._table.exists():
            empty = schema.arrow.empty_table()
            lance.write_dataset(empty, location.uri, storage_options=location.storage_options)
        dataset = self._table.open()
        missing = [field for field in schema.arrow if field.name not in dataset.schema.names]
        if missing:
            dataset.add_columns(
                pa.schema([field.with_nullable(nullable=True) for field in missing])
            )
        return dataset
