"""Lance tables with at most one row per key: the reading side."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import lance
import pyarrow as pa
from obstore.exceptions import BaseError

from unreel.core.chunks import SCAN_ROWS
from unreel.core.errors import (
    GO_ON,
    UnreadableSourceError,
    UnreelError,
    format_library_error,
    raise_if_machine_error,
)
from unreel.core.safe_names import read_clip_id
from unreel.engine.key_index import KeyIndex
from unreel.engine.location import StorageLocation
from unreel.engine.schema import SEAL_COLUMN, TableSchema, compute_row_seals
from unreel.engine.stage import Row

_CACHE_BYTES = 4 * 2**20
"""Size of Lance's caches, which by default hold up to a gigabyte of manifests of old versions."""

_BATCH_BYTES = 256 << 20
"""Maximum size of a batch; 1,024 answers are smaller, although the longest have half a megabyte."""

_IDS = ("clip", "second")
"""Columns with ids of clips, in all tables that have them; empty if no id is known."""

_FILE = re.compile(r"_versions/\d+\.manifest|data/[^/]+\.lance")
"""Pattern of the files of a commit; a transaction file without them belongs to an incomplete commit."""


def convert_arrow_to_list(column: Any) -> list[Any]:
    """Return the values of an Arrow array as Python objects, several times faster than `to_pylist`."""
    if column.null_count == len(column):
        return [None] * len(column)
    if pa.types.is_string(column.type) or (
        pa.types.is_integer(column.type) and not column.null_count
    ):
        with suppress(pa.ArrowException):  # invalid text, for which `to_pylist` raises the error
            values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
            return values
    listed: list[Any] = column.to_pylist()
    return listed


def _iter_column_rows(columns: Mapping[str, list[Any]]) -> Iterator[Row]:
    names = tuple(columns)
    return (dict(zip(names, cells, strict=True)) for cells in zip(*columns.values(), strict=True))


class _MissingTableError(UnreadableSourceError):
    """Error for a location without a table, as opposed to a table of an unknown writer."""


class LanceTable:
    """Reader of the newest version of a table; it caches the key index, so reuse one for lookups."""

    def __init__(self, location: StorageLocation, schema: TableSchema) -> None:
        self.place = location
        self.schema = schema
        self._index = KeyIndex()
        self._unique: KeyIndex | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return LanceTable, (self.place, self.schema)

    def exists(self) -> bool:
        """Return whether anything was committed here."""
        return self._find() is not None

    def count(self, where: str | None = None) -> int:
        """Return the number of rows of the table, or of those that satisfy the filter `where`."""
        dataset = self._find()
        with self.reading():
            return 0 if dataset is None else int(dataset.count_rows(where))

    def failures(self) -> Counter[str]:
        """Count failed rows by reason."""
        tally: Counter[str] = Counter()
        dataset = self._find()
        if dataset is not None:
            where = "failure_reason IS NOT NULL"
            for batch in self.scan(dataset, columns=["failure_reason"], filter=where):
                tally.update(batch.column("failure_reason").to_pylist())
        return tally

    def rows(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        version: int | None = None,
    ) -> Iterator[Row]:
        """Yield every row of `version` or the latest version, upgraded to this release.

        A row of another version may lack some of `columns`: pass them only in code that knows the
        schema. `where` is a filter in Lance's SQL. Raise `UnreadableSourceError` if the table is
        missing or damaged, or has a key twice.
        """
        dataset = self.open(version)
        self._require_unique_keys(dataset)
        names = None if columns is None else [*{"key", "row_version", *columns}]
        for batch in self.scan(dataset, columns=names, filter=where, batch_size=SCAN_ROWS):
            for row in self._whole_rows(batch):
                yield row if columns is None else {name: row[name] for name in columns}

    def held(self, keys: Sequence[str]) -> Mapping[str, str | None]:
        """Return the failure reason of the stored row of each key, `None` for a success; omit missing keys."""
        rows = self._look_up(keys, columns=["key", "failure_reason"])
        return {row["key"]: row["failure_reason"] for row in rows}

    def get(self, keys: Sequence[str]) -> list[Row]:
        """Return the complete rows of `keys`, in any order; keys without a row are omitted."""
        return list(self._look_up(keys, columns=None))

    def at(self, dataset: Any, addresses: Sequence[int]) -> list[Row]:
        """Return the complete rows at `addresses`, in that order; `dataset` is a version of this table."""
        with self.reading():
            table = dataset._take_rows(list(addresses))  # noqa: SLF001  the one way by address
            batches = table.to_batches(SCAN_ROWS)
        return [row for batch in batches for row in self._whole_rows(batch)]

    def _whole_rows(self, batch: Any) -> list[Row]:
        """Return the complete rows of `batch`, checked and upgraded to this release.

        Raise `UnreadableSourceError` if a cell is too large or cannot be read, a row was changed
        after it was written, or an id is not the id of a clip.
        """
        columns = self._columns_of(batch)
        self.schema.require_known_version(max(columns["row_version"], default=self.schema.version))
        self._require_unbroken(columns)
        columns.pop(SEAL_COLUMN, None)
        for name in _IDS:
            for clip in columns.get(name, ()):
                if clip:
                    read_clip_id(clip, self.place.uri)
        return [self.schema.upgrade(row) for row in _iter_column_rows(columns)]

    def _columns_of(self, batch: Any) -> dict[str, list[Any]]:
        """Return the values of `batch` by column; too large cells are rejected before they become objects."""
        if batch.nbytes > _BATCH_BYTES:
            raise UnreadableSourceError(
                self.place.uri,
                f"{batch.num_rows} of its rows take up {batch.nbytes} bytes",
                "Something else wrote this table: name another, or make it again",
            )
        try:
            names = batch.schema.names
            return {name: convert_arrow_to_list(batch.column(i)) for i, name in enumerate(names)}
        except ValueError as error:
            raise UnreadableSourceError(
                self.place.uri, f"a cell cannot be read: {error}", "Make the table again"
            ) from error

    def _require_unbroken(self, columns: Mapping[str, list[Any]]) -> None:
        """Raise for a row that was changed after it was written; rows without a seal are not checked."""
        written = columns.get(SEAL_COLUMN, ())
        if not any(seal is not None for seal in written):
            return
        for key, old, new in zip(columns["key"], written, compute_row_seals(columns), strict=True):
            if old is not None and old != new:
                raise self._damaged(f"the row {key} was changed after it was written")

    def _look_up(self, keys: Sequence[str], *, columns: list[str] | None) -> Iterator[Row]:
        """Return the stored rows of `keys`: complete and checked, or with only `columns` if given."""
        dataset = self._find() if keys else None
        if dataset is None:
            return
        if columns is not None:
            columns = [name for name in columns if name in dataset.schema.names]
        wanted = set(keys)
        index = self.key_index(dataset)
        slots = index.candidates(list(wanted))
        with self.reading():
            for batch in index.take(dataset, slots, columns):
                own = [key in wanted for key in self._columns_of(batch.select(["key"]))["key"]]
                # Without hash collisions.
                matching = batch if all(own) else batch.filter(pa.array(own))
                yield from (
                    _iter_column_rows(self._columns_of(matching))
                    if columns is not None
                    else self._whole_rows(matching)
                )

    def key_index(self, dataset: Any) -> KeyIndex:
        """Return the key index of `dataset`, a version of this table; only new parts are read."""
        with self.reading():
            self._index = self._index.follow(dataset)
        return self._index

    def check(self) -> None:
        """Raise if a key is in the table twice, or a row was written by a later release."""
        dataset = self._find()
        if dataset is not None:
            self._require_unique_keys(dataset)
            where = f"row_version > {self.schema.version}"
            for batch in self.scan(dataset, columns=["row_version"], filter=where, limit=1):
                for row in batch.to_pylist():
                    self.schema.require_known_version(row["row_version"])

    def open(self, version: int | None = None) -> Any:
        """Return the dataset at `version`, or the latest; raise `UnreadableSourceError` if missing or damaged."""
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
            raise_if_machine_error(error)
            if self.files():
                raise self._damaged(error) from error
            raise _MissingTableError(
                self.place.uri,
                f"no {self.schema.name} table: {error}",
                "Check the path; a run writes it with its first commit",
            ) from error
        self.schema.require(dataset.schema, self.place.uri)
        return dataset

    def files(self) -> list[str]:
        """Return the paths of the table's manifests and data files, relative to the table."""
        with self.reading():
            return [name for name in self.place.names() if _FILE.fullmatch(name)]

    def _find(self) -> Any:
        """Return the dataset, `None` before a commit; raise `UnreadableSourceError` if it is damaged."""
        try:
            return self.open()
        except _MissingTableError:
            return None

    def scan(self, dataset: Any, **options: Any) -> Iterator[Any]:
        """Yield batches of an open version; only its own read errors become `UnreadableSourceError`."""
        with self.reading():
            yield from dataset.scanner(**options).to_batches()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Convert errors of Lance, Arrow and the store about unreadable files to `UnreadableSourceError`."""
        try:
            yield
        except UnreelError:
            raise
        except (BaseError, OSError, ValueError, RuntimeError) as error:
            raise_if_machine_error(error)
            raise self._damaged(error) from error

    def _damaged(self, problem: object) -> UnreadableSourceError:
        folder = self.place.uri.rpartition("/")[0] or "."
        remedy = f"See what is left with `unreel runs check {folder}`"
        if not self.place.is_local:
            remedy = f"{GO_ON}. If it stays so, try `unreel doctor --store {folder}`. {remedy}"
        return UnreadableSourceError(
            self.place.uri, f"cannot be read: {format_library_error(problem)}", remedy
        )

    def _require_unique_keys(self, dataset: Any) -> None:
        index = self.key_index(dataset)
        if index is self._unique:
            return
        with self.reading():
            doubled = index.doubled(dataset)
        if doubled:
            folder = self.place.uri.rpartition("/")[0] or "."
            raise UnreadableSourceError(
                self.place.uri,
                f"{len(doubled)} keys are in it more than once, the first is {doubled[0]}",
                "Something else wrote this table. Restore its last version without them: "
                f"`unreel runs restore {folder}`",
            )
        self._unique = index
