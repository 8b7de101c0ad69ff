"""Answers given before, replayed: for demonstrations, tests and re-runs without a server."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from unreel.core.answer import Reply, Usage
from unreel.core.errors import UnreadableSourceError
from unreel.core.failure import Failure, FailureReason
from unreel.reviewers.contract import Exhibit, Material, Sheet

_FORM: Final = (
    'Write one object per line: {"question": KEY} or {"clip": NAME}, with "text", or with '
    '"failure" and "detail"'
)


@dataclass(frozen=True, slots=True)
class RecordedReviewer:
    """Replays outcomes by question key, else by the clip's id or file name.

    A pair goes by its question key, or by its clips' names joined with `+` in the order shown.
    """

    name: str
    outcomes: Mapping[str, Reply | Failure] = field(repr=False)
    declared_space: str = "pixel"
    """The space of the boxes in the recorded texts."""

    @property
    def wants(self) -> frozenset[Material]:
        return frozenset()

    def box_space(self, exhibit: Exhibit) -> str:  # noqa: ARG002  the same for every clip
        return self.declared_space

    async def answer(self, sheet: Sheet) -> Reply | Failure:
        for handle in _handles(sheet):
            if handle in self.outcomes:
                return self.outcomes[handle]
        shown = " and ".join(_file_name(exhibit) for exhibit in sheet.exhibits)
        return Failure(FailureReason.NOT_RECORDED, f"no answer is recorded for {shown}")

    async def close(self) -> None:
        """Nothing to close."""


def read_recorded(path: Path, *, name: str) -> RecordedReviewer:
    """The recorded reviewer in a JSONL file; a line that cannot be read is an error with its number."""
    try:
        with path.open(encoding="utf-8") as lines:
            return RecordedReviewer(name, dict(_read_lines(path, lines)))
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableSourceError(str(path), f"cannot be read ({error})", _FORM) from error


def _handles(sheet: Sheet) -> Iterator[str]:
    yield sheet.key
    yield "+".join(exhibit.clip for exhibit in sheet.exhibits)
    yield "+".join(_file_name(exhibit) for exhibit in sheet.exhibits)


def _file_name(exhibit: Exhibit) -> str:
    return PurePosixPath(exhibit.location).name


def _read_lines(path: Path, lines: Iterable[str]) -> Iterator[tuple[str, Reply | Failure]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield _read_line(json.loads(line))
        except (ValueError, LookupError, TypeError) as error:
            problem = f"line {number} holds no recorded answer ({error})"
            raise UnreadableSourceError(str(path), problem, _FORM) from error


def _read_line(row: Mapping[str, Any]) -> tuple[str, Reply | Failure]:
    handle = str(row["question"] if "question" in row else row["clip"])
    if "failure" in row:
        return handle, Failure(FailureReason(row["failure"]), str(row.get("detail", "")))
    usage = None
    if "input_tokens" in row:
        usage = Usage(
            input_tokens=int(row["input_tokens"]), output_tokens=int(row["output_tokens"])
        )
    text = sys.intern(row["text"])  # a hundred thousand answers have few different texts
    return handle, Reply(text=text, latency_us=row.get("latency_us"), usage=usage)
