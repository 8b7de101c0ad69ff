"""Answers given before, replayed: for demonstrations, tests and re-runs without a server."""

import itertools
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from unreel.core.answer import Reply, Usage
from unreel.core.document import parse_object
from unreel.core.errors import UnreadableSourceError
from unreel.core.failure import Failure, FailureReason
from unreel.reviewers.contract import Exhibit, Material, Sheet

LINE_BYTES: Final = 4 << 20
_LARGEST: Final = 10**12
_FORM: Final = (
    'Write one object per line: {"question": KEY} or {"clip": NAME}, with "text", or with '
    '"failure" and "detail"; "protocol" beside a clip says which instrument was answered'
)


class Outcomes(Protocol):
    """What was recorded, by handle: a dict, or a file that is looked into."""

    def get(self, handle: str, /) -> Reply | Failure | None:
        """The outcome under `handle`, `None` when there is none."""
        ...


@dataclass(frozen=True, slots=True)
class RecordedReviewer:
    """Replays outcomes by question key, else by the clip's id or file name.

    A line of a clip that names its protocol goes before one that does not. A pair goes by its question
    key, or by its clips' names joined with `+` in the order shown.
    """

    name: str
    outcomes: Outcomes = field(repr=False)
    declared_space: str = "pixel"
    """The space of the boxes in the recorded texts."""

    @property
    def wants(self) -> frozenset[Material]:
        return frozenset()

    def box_space(self, exhibit: Exhibit) -> str:  # noqa: ARG002  the same for every clip
        return self.declared_space

    async def answer(self, sheet: Sheet) -> Reply | Failure:
        for handle in _handles(sheet):
            found = self.outcomes.get(handle)
            if found is not None:
                return found
        shown = " and ".join(_file_name(exhibit) for exhibit in sheet.exhibits)
        return Failure(FailureReason.NOT_RECORDED, f"no answer is recorded for {shown}")

    async def close(self) -> None:
        """Nothing to close."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A JSONL file of outcomes; memory holds 16 bytes for a line, answers stay in the file.

    Where a handle is in the file twice, its last line counts.
    """

    path: Path
    _marks: NDArray[np.uint64]
    """A digest of each handle, sorted."""
    _offsets: NDArray[np.uint64]
    """Where in the file the line of each mark begins."""

    def get(self, handle: str, /) -> Reply | Failure | None:
        """The outcome under `handle`, read from the file now; `None` when there is none."""
        mark = np.uint64(_mark(handle))
        first = int(np.searchsorted(self._marks, mark, side="left"))
        last = int(np.searchsorted(self._marks, mark, side="right"))
        for place in range(last - 1, first - 1, -1):
            try:
                found, outcome = self._read_at(int(self._offsets[place]))
            except (OSError, ValueError, LookupError, TypeError) as error:
                detail = f"{self.path.name} changed while its answers were replayed ({error})"
                return Failure(FailureReason.NOT_RECORDED, detail)
            if found == handle:
                return outcome
        return None

    def _read_at(self, offset: int) -> tuple[str, Reply | Failure]:
        with self.path.open("rb") as file:
            file.seek(offset)
            return _read_line(parse_object(file.readline(LINE_BYTES)))


def read_recorded(path: Path, *, name: str) -> RecordedReviewer:
    """The recorded reviewer in a JSONL file; a line that cannot be read is an error with its number."""
    marks, offsets = array("Q"), array("Q")
    try:
        for offset, handle in _index(path):
            marks.append(_mark(handle))
            offsets.append(offset)
    except OSError as error:
        if isinstance(error, UnreadableSourceError):
            raise
        raise UnreadableSourceError(str(path), f"cannot be read ({error})", _FORM) from error
    unsorted = np.frombuffer(marks, dtype=np.uint64) if marks else np.empty(0, np.uint64)
    order = np.argsort(unsorted, kind="stable")
    places = np.frombuffer(offsets, dtype=np.uint64) if offsets else np.empty(0, np.uint64)
    return RecordedReviewer(name, Recording(path, unsorted[order], places[order]))


def _index(path: Path) -> Iterator[tuple[int, str]]:
    """Where each line begins, and its handle; every line is read once, so that errors come early."""
    offset = 0
    with path.open("rb") as lines:
        for number in itertools.count(1):
            line = lines.readline(LINE_BYTES)
            if not line:
                return
            if len(line) == LINE_BYTES and not line.endswith(b"\n"):
                problem = f"line {number} is longer than {LINE_BYTES} bytes"
                raise UnreadableSourceError(str(path), problem, _FORM)
            if line.strip():
                try:
                    yield offset, _read_line(parse_object(line))[0]
                except (ValueError, LookupError, TypeError) as error:
                    problem = f"line {number} holds no recorded answer ({error})"
                    raise UnreadableSourceError(str(path), problem, _FORM) from error
            offset += len(line)


def _handles(sheet: Sheet) -> Iterator[str]:
    yield sheet.key
    clips = "+".join(exhibit.clip.id for exhibit in sheet.exhibits)
    files = "+".join(_file_name(exhibit) for exhibit in sheet.exhibits)
    for shown in (clips, files):
        yield _of_protocol(shown, sheet.instrument.protocol)
    yield from (clips, files)


def _of_protocol(clip: str, protocol: str) -> str:
    return f"{protocol}\n{clip}"


def _file_name(exhibit: Exhibit) -> str:
    return PurePosixPath(exhibit.clip.location).name


def _mark(handle: str) -> int:
    return int.from_bytes(blake2b(handle.encode(), digest_size=8).digest(), "big")


def _read_line(row: Mapping[str, Any]) -> tuple[str, Reply | Failure]:
    handle = str(row["question"] if "question" in row else row["clip"])
    handle.encode()
    if "question" not in row and "protocol" in row:
        handle = _of_protocol(handle, str(row["protocol"]))
    if "failure" in row:
        return handle, Failure(FailureReason(row["failure"]), str(row.get("detail", "")))
    usage = None
    if "input_tokens" in row:
        usage = Usage(
            input_tokens=_count(row["input_tokens"]), output_tokens=_count(row["output_tokens"])
        )
    if not isinstance(row["text"], str):
        msg = "its text is no string"
        raise TypeError(msg)
    row["text"].encode()  # half of a surrogate pair is no text
    latency = row.get("latency_us")
    latency_us = None if latency is None else _count(latency)
    return handle, Reply(text=row["text"], latency_us=latency_us, usage=usage)


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value <= _LARGEST:
        msg = "a count that is no whole number, or beyond all measure"
        raise ValueError(msg)
    return value
