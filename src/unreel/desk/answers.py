"""Answers of a case in a run table: a committed question is not asked again."""

import asyncio
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from unreel.core.answer import Reply, Usage
from unreel.core.failure import Failure, read_failure
from unreel.engine.location import StorageLocation
from unreel.engine.stage import Row, to_failed_row
from unreel.engine.table import LanceTable
from unreel.engine.table_writer import TableWriter
from unreel.engine.writer_lock import writer_lock
from unreel.evaluation.run_cost import ESTIMATED
from unreel.evaluation.tables import ANSWERS, usage_columns
from unreel.reviewers.contract import ClipInput, InputKind, Reviewer, ReviewRequest
from unreel.reviewers.factory import OpenReviewer

_TABLE: Final = "answers.lance"


class CaseAnswers:
    """Table of the answers of one case, held open by its worker.

    Args:
        folder: Folder of the case.
        asks_again: Whether stored failures are asked again.
    """

    def __init__(self, folder: Path, *, asks_again: bool) -> None:
        self._table = LanceTable(StorageLocation(str(folder)) / _TABLE, ANSWERS)
        self._asks_again = asks_again
        self._guard = threading.Lock()
        self._held = ExitStack()

    def __enter__(self) -> Self:
        lock = self._held.enter_context(writer_lock(self._table.place))
        self._writer = TableWriter(self._table, lock=lock, observe=lambda _event, _n: None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._held.close()

    def read(self, key: str) -> Reply | Failure | None:
        """Return the stored answer or failure; `None` if the question is to be asked."""
        with self._guard:
            rows = self._table.get([key])
        if not rows or (rows[0]["failure_reason"] is not None and self._asks_again):
            return None
        return _read_outcome(rows[0])

    def commit(self, sheet: ReviewRequest, reviewer: str, outcome: Reply | Failure) -> None:
        """Store the outcome of a question; it replaces a failure."""
        row = _make_row(sheet, reviewer, outcome)
        with self._guard:
            self._writer.replace([ANSWERS.batch([row])])

    def wrap(self, opened: OpenReviewer) -> OpenReviewer:
        """Return the reviewer with these answers before it."""
        return OpenReviewer(_StoredReviewer(opened.reviewer, self), opened.price)


class _StoredReviewer:
    """Reviewer that asks only what is not stored, and stores each answer before it returns it."""

    def __init__(self, reviewer: Reviewer, answers: CaseAnswers) -> None:
        self._reviewer, self._answers = reviewer, answers

    @property
    def name(self) -> str:
        return self._reviewer.name

    @property
    def wants(self) -> frozenset[InputKind]:
        return self._reviewer.wants

    def box_space(self, exhibit: ClipInput) -> str:
        return self._reviewer.box_space(exhibit)

    async def answer(self, sheet: ReviewRequest) -> Reply | Failure:
        stored = await asyncio.to_thread(self._answers.read, sheet.key)
        if stored is not None:
            return stored
        outcome = await self._reviewer.answer(sheet)
        await asyncio.to_thread(self._answers.commit, sheet, self.name, outcome)
        return outcome

    async def close(self) -> None:
        """Do nothing: the pool closes the reviewer."""


def _make_row(sheet: ReviewRequest, reviewer: str, outcome: Reply | Failure) -> Row:
    usage = outcome.usage
    row: Row = {
        "key": sheet.key,
        "reviewer": reviewer,
        "clip": sheet.exhibits[0].clip.id,
        "protocol": sheet.instrument.protocol,
        "protocol_version": sheet.instrument.version,
        "condition": str(sheet.condition),
        **usage_columns(usage),
        ESTIMATED: True if usage is not None and usage.is_estimated else None,
    }
    if isinstance(outcome, Failure):
        return to_failed_row(row, outcome)
    return row | {
        "text": outcome.text,
        "latency_us": outcome.latency_us,
        "answered_by": outcome.answered_by,
        "reply_digest": outcome.digest,
    }


def _read_outcome(row: Mapping[str, Any]) -> Reply | Failure:
    if row["failure_reason"] is not None:
        return read_failure(row["failure_reason"], row["failure_detail"])
    usage = None
    if row["input_tokens"] is not None:
        usage = Usage(
            input_tokens=row["input_tokens"],
            output_tokens=row["output_tokens"] or 0,
            is_estimated=bool(row[ESTIMATED]),
        )
    return Reply(
        text=row["text"],
        latency_us=row["latency_us"],
        usage=usage,
        answered_by=row["answered_by"],
    )
