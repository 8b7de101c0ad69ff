"""Table of the stored answers of one case, so that no answered question is asked again."""

import asyncio
import threading
from pathlib import Path
from typing import Any, Final

from unreel.core.answer import Reply, Usage
from unreel.core.failure import Failure, parse_stored_failure
from unreel.engine.location import StorageLocation
from unreel.engine.stage import Row, convert_to_failed_row
from unreel.engine.table import LanceTable
from unreel.engine.table_writer import TableWriter
from unreel.engine.writer_lock import build_writer_lock
from unreel.evaluation.run_cost import ESTIMATED, build_cost_columns
from unreel.evaluation.table_schemas import ANSWERS
from unreel.reviewers.contract import ReviewRequest
from unreel.reviewers.factory import OpenedReviewer

_TABLE: Final = "answers.lance"
_COPIED: Final = ("text", "latency_us", "answered_by")


class CaseAnswerTable:
    """Table of the reviewers' answers about one case.

    Args:
        folder: Folder of the case.
        asks_again: Whether questions with a stored failure are asked again.
    """

    def __init__(self, folder: Path, *, asks_again: bool) -> None:
        self._table = LanceTable(StorageLocation(str(folder)) / _TABLE, ANSWERS)
        self._asks_again = asks_again
        self._guard = threading.Lock()

    def read(self, key: str) -> Reply | Failure | None:
        """Return the stored answer or failure of a question; `None` if the question must be asked."""
        with self._guard:
            rows = self._table.get([key])
        if not rows or (rows[0]["failure_reason"] is not None and self._asks_again):
            return None
        return _parse_answer_row(rows[0])

    def commit(self, sheet: ReviewRequest, reviewer: str, outcome: Reply | Failure) -> None:
        """Store the answer to a question, or its failure; a stored failure is replaced."""
        batch = ANSWERS.batch([_build_answer_row(sheet, reviewer, outcome)])
        with self._guard, build_writer_lock(self._table.place) as lock:
            TableWriter(self._table, lock=lock, observe=lambda _event, _n: None).replace([batch])

    def wrap(self, opened: OpenedReviewer) -> OpenedReviewer:
        """Return a reviewer that first looks for a stored answer, and stores each new answer."""
        return OpenedReviewer(_AnswerStoringReviewer(opened, self), opened.price)


class _AnswerStoringReviewer:
    """Reviewer that asks only questions without a stored answer, and stores each new answer."""

    def __init__(self, opened: OpenedReviewer, answers: CaseAnswerTable) -> None:
        self._reviewer, self._answers = opened.reviewer, answers
        self.name, self.wants = self._reviewer.name, self._reviewer.wants
        self.box_space, self.close = self._reviewer.box_space, self._reviewer.close

    async def answer(self, sheet: ReviewRequest) -> Reply | Failure:
        stored = await asyncio.to_thread(self._answers.read, sheet.key)
        if stored is not None:
            return stored
        outcome = await self._reviewer.answer(sheet)
        await asyncio.to_thread(self._answers.commit, sheet, self.name, outcome)
        return outcome


def _build_answer_row(sheet: ReviewRequest, reviewer: str, outcome: Reply | Failure) -> Row:
    row: Row = {
        "key": sheet.key,
        "reviewer": reviewer,
        "clip": sheet.exhibits[0].clip.id,
        "protocol": sheet.instrument.protocol,
        "protocol_version": sheet.instrument.version,
        "condition": str(sheet.condition),
        **build_cost_columns(outcome.usage, None, None),
    }
    if isinstance(outcome, Failure):
        return convert_to_failed_row(row, outcome)
    copied = {name: getattr(outcome, name) for name in _COPIED}
    return row | copied | {"reply_digest": outcome.digest}


def _parse_answer_row(row: Row) -> Reply | Failure:
    if row["failure_reason"] is not None:
        return parse_stored_failure(row["failure_reason"], row["failure_detail"])
    usage: dict[str, Any] = {name: row[name] for name in ("input_tokens", "output_tokens")}
    is_known = None not in usage.values()
    return Reply(
        **{name: row[name] for name in _COPIED},
        usage=Usage(**usage, is_estimated=bool(row[ESTIMATED])) if is_known else None,
    )
