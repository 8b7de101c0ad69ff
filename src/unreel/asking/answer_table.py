"""Schema and rows of the Lance table of answers, and a store of answers in that table."""

import json
import threading
from typing import Any

from unreel.asking.answer_store import AskedQuestionResult, QuestionClaim, StoredAnswer
from unreel.core.answer import Reply, Usage
from unreel.core.question import Question
from unreel.engine.location import StorageLocation
from unreel.engine.schema import TableSchema
from unreel.engine.stage import Row
from unreel.engine.table import LanceTable
from unreel.engine.table_writer import TableWriter
from unreel.engine.writer_lock import build_writer_lock

ANSWERS = TableSchema(
    name="answers",
    version=1,
    columns={
        "reviewer": "string",
        "clip": "string",
        "second": "string",
        "protocol": "string",
        "protocol_version": "int32",
        "condition": "string",
        "text": "string",
        "latency_us": "int64",
        "input_tokens": "int64",
        "output_tokens": "int64",
        "cost_usd": "float64",
        "notes": "string",
        "usage_estimated": "bool",
        "answered_by": "string",
        "reply_digest": "string",
    },
    later=frozenset({"answered_by", "reply_digest", "usage_estimated"}),
)
"""Schema of answers: one row per question and reviewer; `second` is the other clip of a pair, `notes` is JSON.

`answered_by` is the model that the response names if it is not the requested one, `reply_digest` a hash of
the reply's text, checked when answers are scored.
"""

ESTIMATED = "usage_estimated"
"""Name of the column, and of the total in `Progress`, of rows whose tokens the server did not report."""
PAID = ("input_tokens", "output_tokens", "cost_usd")
"""Names of the columns that are summed over the attempts of a question."""
CLIP_CLOCK = "first frame"
"""Zero point of stored frame times."""
_COPIED = ("text", "latency_us", "answered_by")


def build_question_columns(question: Question, reviewer: str) -> Row:
    """Return the columns of a table row that identify `question` to `reviewer`."""
    first, *second = question.shown
    return {
        "key": question.key(reviewer),
        "reviewer": reviewer,
        "clip": first,
        "second": second[0] if second else None,
        "protocol": question.instrument.protocol,
        "protocol_version": question.instrument.version,
        "condition": str(question.condition),
    }


def build_answer_columns(result: AskedQuestionResult, before: Row | None = None) -> Row:
    """Return the columns of the answer, input and cost of a result; of a failure all except the answer.

    `before` contains the tokens and cost of earlier attempts.
    """
    usage, outcome = result.outcome.usage, result.outcome
    columns: dict[str, Any] = {
        **build_token_columns(usage),
        "cost_usd": None if result.cost_usd is None else float(result.cost_usd),
        ESTIMATED: True if usage is not None and usage.is_estimated else None,
    }
    for name, amount in (before or {}).items():
        if amount is not None:
            columns[name] = (columns[name] or 0) + amount if name in PAID else amount
    if result.box_space is not None:
        frames = [
            [[frame.index, str(frame.at_s)] for frame in clip_input.frames]
            for clip_input in result.inputs
        ]
        notes = {"box_space": result.box_space, "clock": CLIP_CLOCK, "frames": frames}
        columns["notes"] = json.dumps(notes)
    if isinstance(outcome, Reply):
        columns |= {name: getattr(outcome, name) for name in _COPIED}
        columns["reply_digest"] = outcome.digest
    return columns


def build_token_columns(usage: Usage | None) -> Row:
    """Return the token columns of a table row; they are empty if no tokens were reported."""
    return {
        "input_tokens": None if usage is None else usage.input_tokens,
        "output_tokens": None if usage is None else usage.output_tokens,
    }


class LanceAnswerStore:
    """Store of answers in a Lance table that one process writes."""

    def __init__(self, location: StorageLocation) -> None:
        self._table = LanceTable(location, ANSWERS)
        self._lock = threading.Lock()

    def find(self, key: str, /) -> StoredAnswer | None:
        """Return the stored answer to the question `key`; `None` if there is none."""
        with self._lock:
            rows = self._table.get([key])
        if not rows or rows[0]["text"] is None:
            return None
        row = rows[0]
        tokens: dict[str, Any] = {name: row[name] for name in ("input_tokens", "output_tokens")}
        usage = None
        if None not in tokens.values():
            usage = Usage(**tokens, is_estimated=bool(row[ESTIMATED]))
        reply = Reply(**{name: row[name] for name in _COPIED}, usage=usage)
        notes = json.loads(row["notes"] or "{}")
        return StoredAnswer(reply=reply, box_space=notes.get("box_space"))

    def claim(self, key: str, /) -> StoredAnswer | QuestionClaim:
        """Return the stored answer to the question `key`; otherwise the process may ask it."""
        return self.find(key) or QuestionClaim.OURS

    def store(self, result: AskedQuestionResult, _reply: Reply, /) -> None:
        """Store the answer to a question."""
        row = build_question_columns(result.question, result.reviewer)
        row |= build_answer_columns(result)
        with self._lock, build_writer_lock(self._table.place) as lock:
            writer = TableWriter(self._table, lock=lock, observe=lambda _event, _n: None)
            writer.replace([ANSWERS.batch([row])])

    def release(self, key: str, /) -> None:
        """Do nothing, because the one process that writes does not claim a question twice."""
