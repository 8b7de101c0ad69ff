"""Sort the items of sources by name on disk, because a list of all would not fit into memory."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
from pydantic import TypeAdapter

from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.names import NAMED_BEFORE
from unreel.core.chunks import SCAN_ROWS
from unreel.curation.leaving import LeavingOut, LeftOuts
from unreel.curation.piece import GIVE_LICENCE, NO_LICENCE, REJECTED, ExcludedSegment
from unreel.curation.pieces import WorkDirectory
from unreel.curation.source.sources import SourceClip
from unreel.curation.working_table import WorkingTable, write_rows

_STEP: Final = "ingest"
_ENTRY: Final = TypeAdapter(Entry)
_TEXTS: Final = ("name", "location", "mark", "licence")


def write_listing(
    listed: Iterable[SourceClip | Rejected], shelf: WorkDirectory
) -> tuple[WorkingTable, LeftOuts]:
    """Write the `listed` clips as rows sorted by name, and the rejected ones."""
    leaving = LeavingOut(shelf.folder, "listing")
    rows = write_rows(shelf.folder, "listing.rows", _batches(listed, leaving), _schema())
    return rows.by_name(), leaving.end()


def sift_listing(
    listing: WorkingTable, shelf: WorkDirectory, *, require_licence: bool
) -> tuple[WorkingTable, LeftOuts]:
    """The rows that can be ingested: the first of each name, with a licence where that is required."""
    leaving = LeavingOut(shelf.folder, "listing-sifted")
    kept = np.ones(len(listing), np.bool_)
    place, before = 0, None
    for batch in listing.batches(("name", "location", "licence")):
        for row in batch.to_pylist():
            name, location = row["name"], row["location"]
            if name == before:
                leaving.add(ExcludedSegment(name, _STEP, REJECTED, NAMED_BEFORE))
                kept[place] = False
            elif require_licence and not row["licence"]:
                why = f"nothing names its licence. {GIVE_LICENCE}"
                leaving.add(ExcludedSegment(name, _STEP, NO_LICENCE, why, location))
                kept[place] = False
            place, before = place + 1, name
    return listing.where(kept), leaving.end()


def read_listing(listing: WorkingTable) -> Iterator[SourceClip]:
    """The rows as they were listed."""
    for batch in listing.batches(("entry", "location", "mark")):
        for row in batch.to_pylist():
            yield SourceClip(_ENTRY.validate_json(row["entry"]), row["location"], row["mark"])


def _schema() -> Any:
    import pyarrow as pa

    return pa.schema([*((name, pa.string()) for name in _TEXTS), ("entry", pa.binary())])


def _batches(listed: Iterable[SourceClip | Rejected], leaving: LeavingOut) -> Iterator[Any]:
    import pyarrow as pa

    schema, rows = _schema(), []
    for one in listed:
        if isinstance(one, Rejected):
            leaving.add(ExcludedSegment(one.name, _STEP, REJECTED, one.why))
            continue
        rows.append(
            {
                "name": one.entry.name,
                "location": one.location,
                "mark": one.mark,
                "licence": one.entry.licence,
                "entry": _ENTRY.dump_json(one.entry),
            }
        )
        if len(rows) == SCAN_ROWS:
            yield pa.RecordBatch.from_pylist(rows, schema=schema)
            rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=schema)
