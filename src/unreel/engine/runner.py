"""Interface of every engine: stages over a stream of rows into one sink."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from unreel.engine.stage import Row, Stage


class RowSink(Protocol):
    """Target of finished rows; thread-safe."""

    def offer(self, row: Row) -> bool:
        """Take the row, or say that there is no room now."""
        ...

    def add(self, row: Row) -> None:
        """Take the row, waiting for room."""
        ...

    def require_ready(self) -> None:
        """Raise where the results of further rows could not be kept; called before a row is begun."""
        ...


class StageRunner(Protocol):
    """Puts every row through all stages, in any order, and into the sink: each row once."""

    def run(
        self, rows: Iterable[Row], stages: Sequence[Stage], *, sink: RowSink, ledger: Path
    ) -> None:
        """Return when every row is in the sink; an interrupt leaves finished rows there."""
        ...


def ledger_item(row: Row) -> str:
    """Return the ledger name of the row: key and attempt, so that a retried row starts with 0 crashes."""
    return f"{row['key']}/{row['attempt']}"
