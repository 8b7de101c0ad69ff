"""Interfaces of every engine: a runner applies stages to a stream of rows and fills one sink."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from unreel.engine.stage import Row, Stage


class RowSink(Protocol):
    """Interface of the thread-safe target of finished rows."""

    def offer(self, row: Row) -> bool:
        """Accept the row; return `False` if the sink is full."""
        ...

    def add(self, row: Row) -> None:
        """Accept the row; wait while the sink is full."""
        ...

    def require_ready(self) -> None:
        """Raise if the results of further rows could not be stored; called before a row is started."""
        ...


class StageRunner(Protocol):
    """Interface of an engine that runs every row once through all stages into the sink, in any order."""

    def run(
        self, rows: Iterable[Row], stages: Sequence[Stage], *, sink: RowSink, ledger: Path
    ) -> None:
        """Run every row through the stages, and pass finished rows to `sink`.

        After an interrupt the sink has all rows that were finished.
        """
        ...


def format_start_log_item(row: Row) -> str:
    """Return the row's name in the start log: key and attempt, so that a retry starts with 0 crashes."""
    return f"{row['key']}/{row['attempt']}"
