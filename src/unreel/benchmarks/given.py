"""One row of a file of answers: which question it answers, and what came back.

`unreel score` and the model `recorded` read rows here, so that one file means the same to both.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from unreel.benchmarks import cells
from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.pairing import pair_name
from unreel.benchmarks.tables import Cells, read_table
from unreel.core.answer import Reply, Usage
from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure, FailureReason

NAME_COLUMNS: Final = ("name", "clip", "video", "video_id", "file")
PAIR_COLUMNS: Final = ("first", "second")
FORM: Final = (
    f"Write the columns text and one of {', '.join(NAME_COLUMNS)}, or first and second for a pair; failure "
    "instead of text gives the reason of a missing answer, protocol names the protocol"
)
Outcome = Reply | Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedAnswer:
    """One answer of a file."""

    name: str
    """The clip or pair; "" where only the question's key is there."""
    outcome: Outcome
    key: str = ""
    """`Question.key`; "" where the row answers every question about its clip."""
    protocol: str = ""
    """The instrument that was answered; "" for any."""


def read_answers(path: Path) -> Iterator[ImportedAnswer | Rejected]:
    """The answers of `path`, a JSONL, CSV, TSV or Parquet file, in order."""
    for number, row in enumerate(read_table(path), start=1):
        if isinstance(row, Rejected):
            yield row
            continue
        try:
            yield read_given(row)
        except InvalidValueError as error:
            yield Rejected(f"row {number}", str(error))


def read_given(row: Cells) -> ImportedAnswer:
    """The answer in `row`.

    It names its clip under one of `NAME_COLUMNS`, a pair in the order shown as `FIRST | SECOND` there or
    under `first` and `second`, or one question by its key under `question`. It holds the raw answer under
    `text`, or under `failure` why there is none: a failure reason, or any words.

    Raises:
        InvalidValueError: It names nothing, or a cell cannot be.
    """
    key = cells.text(row.get("question"), "question")
    name = "" if key and not _name_column(row) else _name(row)
    protocol = cells.text(row.get("protocol"), "protocol")
    return ImportedAnswer(name=name, outcome=_outcome(row, name or key), key=key, protocol=protocol)


def clip_name(row: Cells) -> str:
    """The name of the clip that `row` is about.

    Raises:
        InvalidValueError: It names none.
    """
    return _named(row, _name_column(row))


def _name(row: Cells) -> str:
    if all(column in row for column in PAIR_COLUMNS):
        return pair_name(*(_named(row, column) for column in PAIR_COLUMNS))
    return clip_name(row)


def _name_column(row: Cells) -> str | None:
    return next((column for column in NAME_COLUMNS if column in row), None)


def _named(row: Cells, column: str | None) -> str:
    name = cells.text(row[column], column) if column else ""
    if not name:
        cells.refuse("the clip's name", name, f"Write it under one of {', '.join(NAME_COLUMNS)}")
    return name


def _outcome(row: Cells, asked: str) -> Outcome:
    failure = cells.text(row.get("failure"), "failure")
    answer = row.get("text")
    told, made, latency_us = (
        None if cells.is_blank(cell) else cells.whole(cell, column)
        for column in ("input_tokens", "output_tokens", "latency_us")
        for cell in [row.get(column)]
    )
    if failure and not cells.is_blank(answer):
        msg = f"{asked} has a text and a failure. Keep the one that happened"
        raise InvalidValueError(msg)
    if failure:
        return _failure(failure, cells.text(row.get("detail"), "detail"))
    if cells.is_blank(answer):
        return Failure(FailureReason.EMPTY_REPLY, "the answers file holds no text")
    cells.text(answer, "text")
    usage = None
    if told is not None and made is not None:
        usage = Usage(input_tokens=told, output_tokens=made)
    return Reply(text=str(answer), usage=usage, latency_us=latency_us)


def _failure(words: str, detail: str) -> Failure:
    """The failure that `words` state: `reason: detail` as unreel prints it, or anything else."""
    reason, _, rest = words.partition(":")
    if reason in {reason.value for reason in FailureReason}:
        told = detail or rest.strip() or "as the answers file states"
        return Failure(FailureReason(reason), told)
    return Failure(FailureReason.UNSTATED, f"{words}: {detail}" if detail else words)
