"""Table schemas: the columns of each kind of table, the upgrade of older rows, and the seal of each row.

The seal is a hash over the other values of a row. Lance has no checksums for its pages, so a flipped
bit in a text would be read as the reviewer's answer. The seal reveals accidental changes, not an
attacker who writes a new seal.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

import pyarrow as pa

from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.failure import Failure, FailureReason
from unreel.engine.stage import DETAIL_CHARACTERS, Row, convert_to_failed_row, is_failed_row


class LaterReleaseError(UnreadableSourceError):
    """Error for a table with rows that only a later release can read."""


SEAL_COLUMN = "seal"
_ENCODER = json.JSONEncoder(separators=(",", ":"), default=repr)
_QUOTE = json.encoder.encode_basestring_ascii


def compute_row_seal(row: Mapping[str, Any]) -> int:
    """Return the hash (seal) of the values of `row`; empty columns are ignored."""
    values = [
        (name, row[name]) for name in sorted(row) if row[name] is not None and name != SEAL_COLUMN
    ]
    state = hashlib.blake2b(_ENCODER.encode(values).encode(), digest_size=8)
    return int.from_bytes(state.digest(), "big", signed=True)


def compute_row_seals(columns: Mapping[str, Sequence[Any]]) -> list[int]:
    """Return the seal of each row of equally long `columns`; several times faster than row by row."""
    spelled = [
        _format_json_cells(name, columns[name]) for name in sorted(columns) if name != SEAL_COLUMN
    ]
    return [
        int.from_bytes(
            hashlib.blake2b(f"[{','.join(filter(None, cells))}]".encode(), digest_size=8).digest(),
            "big",
            signed=True,
        )
        for cells in zip(*spelled, strict=True)
    ]


def _format_json_cells(name: str, values: Sequence[Any]) -> Sequence[str]:
    before = f"[{_QUOTE(name)},"
    kinds = {*map(type, values)}
    if kinds <= {str, NoneType}:
        texts = {text: f"{before}{_QUOTE(text)}]" for text in {*values} - {None}}
        return [texts.get(text, "") for text in values]
    if kinds == {int}:
        return [f"{before}{number}]" for number in values]
    encode = _ENCODER.encode
    return ["" if value is None else f"{before}{encode(value)}]" for value in values]


_NOT_OURS = "Something else wrote this table: name another, or make it again"
_EVERY_TABLE = (
    pa.field("key", pa.string(), nullable=False),
    pa.field("row_version", pa.int16(), nullable=False),
    pa.field("attempt", pa.int32(), nullable=False),
    pa.field("failure_reason", pa.string()),
    pa.field("failure_detail", pa.string()),
)
_LARGEST_BATCH = 1 << 28
"""Maximum characters and bytes of all texts in one batch; Arrow's own limit is eight times as many bytes."""
_TEXTS = (str, bytes)
_SEAL = pa.field(SEAL_COLUMN, pa.int64())


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """Columns of one kind of table, and the upgrade functions from each older row version.

    Every table has `key`, `row_version`, `attempt` (1 for the first), `failure_reason`,
    `failure_detail` and `seal`. The additional `columns` may all be null, because a failure has
    none of them.
    """

    name: str
    version: int
    columns: Mapping[str, str]
    """Arrow types of the columns by name, in order, for example `int64`."""
    upgrades: Mapping[int, Callable[[Row], Row]] = field(default_factory=dict)
    later: frozenset[str] = frozenset({"mark"})
    """Columns that tables of earlier releases may lack; a writer adds them."""

    def __post_init__(self) -> None:
        if set(self.upgrades) != set(range(1, self.version)):
            raise InvalidValueError(
                f"{self.name} needs one upgrade for each version from 1 to {self.version - 1}. Add it"
            )

    @property
    def _fields(self) -> list[Any]:
        return [pa.field(name, pa.type_for_alias(kind)) for name, kind in self.columns.items()]

    @property
    def arrow(self) -> Any:
        """Return the Arrow schema of this release."""
        return pa.schema([*_EVERY_TABLE, *self._fields, _SEAL])

    def batch(self, rows: Sequence[Row]) -> Any:
        """Return the rows as an Arrow batch, each with its seal.

        Raise `InvalidValueError` if a row has an unknown column or a value that its column cannot
        hold, or the rows together are too large for one batch.
        """
        batch = self._unsealed(rows)
        # Computed from Arrow's values, because readers get these; empty values are ignored.
        filled = {
            name: batch.column(name).to_pylist()
            for name in batch.schema.names
            if batch.column(name).null_count < batch.num_rows
        }
        seals = pa.array(compute_row_seals(filled), _SEAL.type)
        return batch.set_column(batch.num_columns - 1, _SEAL, seals)

    def _unsealed(self, rows: Sequence[Row]) -> Any:
        self._require_known_columns(rows)
        fixed: Row = {"row_version": self.version, SEAL_COLUMN: None}
        complete = [{"attempt": 1} | row | fixed for row in rows]
        try:
            if sum(map(compute_row_text_size, complete)) > _LARGEST_BATCH:
                raise ValueError(f"texts are longer than {_LARGEST_BATCH} characters")
            batch = pa.RecordBatch.from_pylist(complete, schema=self.arrow)
            empty = [
                column.name
                for column in self.arrow
                if not column.nullable and batch.column(column.name).null_count
            ]
            if empty:
                raise ValueError(f"no value in {', '.join(empty)}")
        except Exception as error:  # converting a value can run any code
            raise InvalidValueError(
                f"a row does not fit the columns of {self.name}: {error}. Fix the stage"
            ) from error
        return batch

    def portions(self, rows: Sequence[Row]) -> list[list[Row]]:
        """Split the rows, in order, into lists that each fit into one Arrow batch.

        A row that fits into no batch becomes a failure row and keeps every value that its column
        can hold. A row that had already failed keeps its failure reason. Raise `InvalidValueError`
        if a row has an unknown column, so that no row of its stage would fit.
        """
        self._require_known_columns(rows)
        return self._split([row if self._holds([row]) else self._give_up(row) for row in rows])

    def _split(self, rows: list[Row]) -> list[list[Row]]:
        if len(rows) == 1 or self._holds(rows):
            return [rows]
        middle = len(rows) // 2
        return self._split(rows[:middle]) + self._split(rows[middle:])

    def _give_up(self, row: Row) -> Row:
        bare = {name: row[name] for name in ("key", "attempt") if name in row}
        cells = {name: row[name] for name in row if self._holds([bare | {name: row[name]}])}
        if is_failed_row(cells):
            detail = str(row.get("failure_detail")).encode(errors="backslashreplace").decode()
            return cells | {"failure_detail": detail[:DETAIL_CHARACTERS]}
        lost = ", ".join(
            f"{name} ({type(row[name]).__name__})" for name in row if name not in cells
        )
        detail = f"the table of {self.name} cannot store its {lost}"
        return convert_to_failed_row(bare | cells, Failure(FailureReason.STAGE_FAILED, detail))

    def _holds(self, rows: Sequence[Row]) -> bool:
        try:
            self._unsealed(rows)
        except InvalidValueError:
            return False
        return True

    def _require_known_columns(self, rows: Sequence[Row]) -> None:
        unknown = {name for row in rows for name in row} - set(self.arrow.names)
        if unknown:
            raise InvalidValueError(
                f"no column of {self.name} is named {', '.join(sorted(unknown))}. Add it to the "
                "table's schema, or begin its name with _ when it need not be stored"
            )

    def require(self, schema: Any, source: str) -> None:
        """Raise `UnreadableSourceError` if a table's columns match this schema in none of its versions."""
        first = (*_EVERY_TABLE, *self._fields) if self.version == 1 else _EVERY_TABLE
        needed = [field.name for field in first if field.name not in self.later]
        wrong = [name for name in needed if name not in schema.names]
        wrong += [
            field.name
            for field in self.arrow
            if field.name in schema.names
            and not _is_compatible_field(field, schema.field(field.name))
        ]
        if wrong:
            raise UnreadableSourceError(
                source,
                f"not a table of {self.name}: column {wrong[0]} is missing or of another type",
                _NOT_OURS,
            )

    def require_known_version(self, version: int) -> None:
        """Raise if this release cannot read rows of `version`."""
        problem = f"a row of version {version}; this release knows {self.version}"
        if version > self.version:
            raise LaterReleaseError(self.name, problem, "Upgrade unreel")
        if version < 1:
            raise UnreadableSourceError(self.name, problem, _NOT_OURS)

    def upgrade(self, row: Row) -> Row:
        """Return a stored row converted to the row version of this release, one upgrade at a time."""
        version = row["row_version"]
        if version == self.version:
            return row
        self.require_known_version(version)
        while version < self.version:
            row = self.upgrades[version](row)
            version += 1
        return row | {"row_version": version}


def compute_row_text_size(row: Row) -> int:
    """Return the total length of the texts (characters) and bytes in `row`; other values are small."""
    size = 0
    for value in row.values():
        if isinstance(value, _TEXTS):
            size += len(value)
    return size


def _is_compatible_field(known: Any, stored: Any) -> bool:
    """Return whether `stored` has the type of `known`, and no nulls if `known` forbids them."""
    return bool(stored.type == known.type) and (known.nullable or not stored.nullable)
