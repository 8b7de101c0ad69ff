"""Tables and sorted lists on disk between two curation steps, which are read in batches."""

import heapq
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unreel.core.chunks import SCAN_ROWS, iter_chunks
from unreel.core.output_files import OutputDirectory

_RUN = 20_000
"""Number of items that are sorted in memory."""
_OPEN = 16
"""Maximum number of sorted files that are read at once."""

Line = tuple[Any, ...]
"""Line of a sorted file: a tuple of JSON values. Lines are in the order of such tuples."""


class SortedRunWriter:
    """Writer for external sorting: it stores lines, added in any order, in sorted files (runs)."""

    def __init__(self, directory: OutputDirectory, name: str) -> None:
        self._folder, self._name = directory, name
        self._files: list[str] = []
        self._waiting: list[Line] = []
        self._n_put_down = 0

    def add(self, line: Line) -> None:
        self._waiting.append(line)
        if len(self._waiting) == _RUN:
            self._sort()

    def end(self) -> tuple[str, ...]:
        """Write the remaining lines; return the sorted files, merged to 16 that a reader can open."""
        if self._waiting:
            self._sort()
        while len(self._files) > _OPEN:
            joined, self._files = self._files[:_OPEN], self._files[_OPEN:]
            self._put_down(merge_sorted_runs(self._folder, joined))
            for name in joined:
                self._folder.remove(name)
        return tuple(self._files)

    def _sort(self) -> None:
        self._put_down(sorted(self._waiting))
        self._waiting = []

    def _put_down(self, ordered: Iterable[Line]) -> None:
        name = f"{self._name}-{self._n_put_down}.jsonl"
        with self._folder.create_text(name) as file:
            file.writelines(json.dumps(line) + "\n" for line in ordered)
        self._files.append(name)
        self._n_put_down += 1


def merge_sorted_runs(directory: OutputDirectory, files: Sequence[str]) -> Iterator[Line]:
    """Merge the sorted files in `directory` and yield their lines in one sorted order."""
    with ExitStack() as stack:
        runs = [stack.enter_context(directory.read(name)) for name in files]
        yield from heapq.merge(*(map(_parse_json_line, run) for run in runs))


def _parse_json_line(text: bytes) -> Line:
    return tuple(json.loads(text))


Places = NDArray[np.int64]
"""Indices of rows in a file."""
_OF_ONE_COLUMN = 1 << 16
_CACHE_BYTES = 1 << 20
"""Maximum size of the column data that Lance buffers before writing; its default is eight times as much."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorkingTable:
    """Table on disk between two steps: rows of a Lance file in a given order; empty without a file."""

    file: Path | None = None
    n_rows: int = 0
    places: Places | None = None
    """Indices of the rows in the file, in order; `None` for all rows."""

    def __len__(self) -> int:
        return self.n_rows if self.places is None else len(self.places)

    def batches(
        self, columns: Sequence[str] | None = None, *, rows: int = SCAN_ROWS
    ) -> Iterator[Any]:
        if self.file is None:
            return
        from lance.file import LanceFileReader

        reader = LanceFileReader(str(self.file), columns=None if columns is None else [*columns])
        for start in range(0, len(self), rows):
            n = min(rows, len(self) - start)
            if self.places is None:
                table = reader.read_range(start, n, batch_size=n).to_table()
            else:
                table = _read_rows_at(reader, self.places[start : start + n])
            yield from table.combine_chunks().to_batches()

    def take(self, indices: NDArray[np.intp], columns: Sequence[str]) -> Any:
        """Return the rows at `indices`, in that order, as an Arrow table; indices may repeat."""
        from lance.file import LanceFileReader

        stored = indices if self.places is None else self.places[indices]
        return _read_rows_at(LanceFileReader(str(self.file), columns=[*columns]), stored)

    def column(self, name: str) -> Any:
        import pyarrow as pa

        chunks = [batch.column(0) for batch in self.batches([name], rows=_OF_ONE_COLUMN)]
        return pa.chunked_array(chunks) if chunks else pa.chunked_array([], pa.string())

    def digests(self, name: str) -> NDArray[np.bytes_]:
        """Return the column `name` of 32-byte hashes as an array that can be compared and sorted."""
        packed = b"".join(
            b"".join(batch.column(0).to_pylist())
            for batch in self.batches([name], rows=_OF_ONE_COLUMN)
        )
        return np.frombuffer(packed, "S32")

    def where(self, mask: NDArray[np.bool_]) -> "WorkingTable":
        """Return a table of the rows that the boolean `mask` selects."""
        return self.reordered(np.flatnonzero(mask))

    def reordered(self, order: NDArray[np.intp]) -> "WorkingTable":
        """Return a table of the rows at the indices `order`, in that order."""
        indices = order if self.places is None else self.places[order]
        return replace(self, places=indices.astype(np.int64))

    def by_name(self) -> "WorkingTable":
        """Return the table sorted by name; rows of equal name keep their order."""
        import pyarrow as pa
        import pyarrow.compute as pc

        names = self.column("name")
        at = pa.array(np.arange(len(self), dtype=np.int32))
        sheet = pa.table({"name": names, "at": at}) if len(self) else None
        if sheet is None:
            return self
        keys = [("name", "ascending"), ("at", "ascending")]
        order = pc.sort_indices(sheet, sort_keys=keys).to_numpy()
        is_sorted = bool((order[1:] > order[:-1]).all())
        return self if is_sorted else self.reordered(order.astype(np.intp))


NO_ROWS = WorkingTable()


def format_digest_hex(packed: bytes) -> str:
    """Return a 32-byte hash in hexadecimal; trailing zero bytes, which NumPy removes, are restored."""
    return packed.ljust(32, b"\0").hex()


def write_working_table(
    directory: OutputDirectory, name: str, rows: Iterable[dict[str, Any]], schema: Any
) -> WorkingTable:
    """Write `rows` in batches to the folder's file `name`, replacing it, and return them as a table."""
    import pyarrow as pa
    from lance.file import LanceFileWriter

    directory.require_plain()
    directory.remove(name)
    file, n_rows = directory.root / name, 0
    with LanceFileWriter(str(file), schema, data_cache_bytes=_CACHE_BYTES) as writer:
        for chunk in iter_chunks(rows, SCAN_ROWS):
            writer.write_batch(pa.RecordBatch.from_pylist(chunk, schema=schema))
            n_rows += len(chunk)
    return WorkingTable(file=file if n_rows else None, n_rows=n_rows)


def _read_rows_at(reader: Any, indices: NDArray[np.int64]) -> Any:
    unique, back = np.unique(indices, return_inverse=True)
    rows = reader.take_rows(unique, batch_size=max(1, len(unique))).to_table()
    return rows if np.array_equal(unique, indices) else rows.take(back)
