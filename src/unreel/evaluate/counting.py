"""How much of a run is still to do, counted as it goes by: no list is kept."""

import itertools
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from unreel.engine.stage import Row

if TYPE_CHECKING:
    from unreel.engine.table import Table

_LOOK: Final = 1024


def count_due(rows: Iterable[Row], table: "Table", *, retry: Collection[str]) -> int:
    """How many of `rows` the table has no row for, or one that failed for a reason in `retry`."""
    source, n = iter(rows), 0
    while chunk := {row["key"]: row for row in itertools.islice(source, _LOOK)}:
        held = table.held(list(chunk))
        n += sum(key not in held or held[key].is_due(row, retry) for key, row in chunk.items())
    return n
