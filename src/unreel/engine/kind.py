"""Kinds of tables: their columns, and how rows of older releases become rows of this one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.engine.stage import Row

_EVERY_TABLE: Final = (
    pa.field("key", pa.string(), nullable=False),
    pa.field("row_version", pa.int16(), nullable=False),
    pa.field("attempt", pa.int32(), nullable=False),
    pa.field("failure_reason", pa.string()),
    pa.field("failure_detail", pa.string()),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableKind:
    """The columns of one sort of row, and the steps from each older version to the next.

    Every table has `key`, `row_version`, `attempt` (1 for the first), `failure_reason` and
    `failure_detail`; `columns` come on top and may all be null, because a failure has none of them.
    """

    name: str
    version: int
    columns: tuple[Any, ...]
    """Fields of Arrow."""
    upgrades: Mapping[int, Callable[[Row], Row]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if set(self.upgrades) != set(range(1, self.version)):
            msg = f"{self.name} needs one upgrade for each version from 1 to {self.version - 1}. Add it"
            raise InvalidValueError(msg)

    @property
    def schema(self) -> Any:
        """The Arrow schema of this release."""
        return pa.schema([*_EVERY_TABLE, *self.columns])

    def batch(self, rows: Sequence[Row]) -> Any:
        """The rows as Arrow; a column that no field names is refused.

        Raises:
            InvalidValueError: A row holds an unknown column or a value that its column cannot hold.
        """
        schema = self.schema
        unknown = {name for row in rows for name in row} - set(schema.names)
        if unknown:
            msg = (
                f"no column of {self.name} is named {', '.join(sorted(unknown))}. Add it to the "
                "table's kind, or begin its name with _ when it need not be stored"
            )
            raise InvalidValueError(msg)
        whole = [{"attempt": 1} | row | {"row_version": self.version} for row in rows]
        try:
            return pa.RecordBatch.from_pylist(whole, schema=schema)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            msg = f"a row does not fit the columns of {self.name}: {error}. Mend the stage"
            raise InvalidValueError(msg) from error

    def upgrade(self, row: Row) -> Row:
        """Bring a stored row to this release's version, one step at a time."""
        version = row["row_version"]
        if version > self.version:
            problem = f"a row of version {version}; this release knows {self.version}"
            raise UnreadableSourceError(self.name, problem, "Upgrade unreel")
        while version < self.version:
            row = self.upgrades[version](row)
            version += 1
        return row | {"row_version": version}


ANSWERS: Final = TableKind(
    name="answers",
    version=1,
    columns=(
        pa.field("reviewer", pa.string()),
        pa.field("clip", pa.string()),
        pa.field("second", pa.string()),
        pa.field("protocol", pa.string()),
        pa.field("protocol_version", pa.int32()),
        pa.field("condition", pa.string()),
        pa.field("text", pa.string()),
        pa.field("latency_us", pa.int64()),
        pa.field("input_tokens", pa.int64()),
        pa.field("output_tokens", pa.int64()),
        pa.field("cost_usd", pa.float64()),
        pa.field("notes", pa.string()),
    ),
)
"""One row for a question put to a reviewer; `second` is the other clip of a pair, `notes` is JSON."""

CLIPS: Final = TableKind(
    name="clips",
    version=1,
    columns=(
        pa.field("name", pa.string()),
        pa.field("location", pa.string()),
        pa.field("clip", pa.string()),
        pa.field("facts", pa.string()),
    ),
)
"""One row for a file of a benchmark, `key` being its mark; `clip` is the id of its bytes, `facts` is JSON."""

FINDINGS: Final = TableKind(
    name="findings",
    version=1,
    columns=(
        pa.field("name", pa.string()),
        pa.field("location", pa.string()),
        pa.field("clip", pa.string()),
        pa.field("found", pa.string()),
    ),
)
"""One row for what a step of a job found out about a clip; `found` is JSON."""
