"""Reviewer that replays recorded answers, for demonstrations, tests and runs without a server."""

import itertools
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from unreel.benchmarks.cells import ROW_BYTES
from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.imported_answers import (
    FORM,
    ImportedAnswer,
    parse_imported_answer,
    read_answer_file,
)
from unreel.benchmarks.pairing import BETWEEN
from unreel.core.answer import Reply
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.failure import Failure, FailureReason
from unreel.core.input_files import parse_json_object
from unreel.reviewers.contract import ClipInput, InputKind, ReviewRequest

LINE_BYTES = ROW_BYTES
_DEEPEST = 8
"""Maximum number of trailing path parts that can identify a clip in a file of answers."""
_AND = "\n"
"""Separator of protocol and clip; no name contains it."""
_HELD = (".csv", ".tsv", ".parquet")


@dataclass(frozen=True, slots=True)
class RecordedReviewer:
    """Reviewer that replays recorded outcomes, found by question key, clip name, clip id or path.

    The end of a path is enough: `street/a.mp4` or `a.mp4`. An answer that names its protocol is
    preferred to an answer without a protocol. A pair is found by its clips in the order shown,
    `FIRST | SECOND`.
    """

    name: str
    outcomes: "Mapping[str, Reply | Failure] | RecordedAnswersFile" = field(repr=False)
    declared_space: str = "pixel"
    """Coordinate space of the boxes in the recorded texts."""

    @property
    def wants(self) -> frozenset[InputKind]:
        return frozenset()

    def box_space(self, clip_input: ClipInput) -> str:  # noqa: ARG002  the same for every clip
        return self.declared_space

    async def answer(self, request: ReviewRequest) -> Reply | Failure:
        for handle in _iter_request_keys(request):
            outcome = self.outcomes.get(handle)
            if outcome is not None:
                return outcome
        names = " and ".join(
            PurePosixPath(clip_input.clip.location).name for clip_input in request.inputs
        )
        return Failure(FailureReason.NOT_RECORDED, f"no answer is recorded for {names}")

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


@dataclass(frozen=True, slots=True)
class RecordedAnswersFile:
    """Indexed JSONL file of recorded answers, read on request; a line costs 16 bytes of memory."""

    path: Path
    _hashes: NDArray[np.uint64]
    """Hashes of the keys, sorted."""
    _offsets: NDArray[np.uint64]
    """Byte offset of the line of each hash, in the order of the hashes."""

    def get(self, handle: str, /) -> Reply | Failure | None:
        """Read the outcome of the key `handle`, `None` if missing; a failure if the file changed since."""
        mark = np.uint64(_hash_recorded_answer_key(handle))
        first = int(np.searchsorted(self._hashes, mark, side="left"))
        last = int(np.searchsorted(self._hashes, mark, side="right"))
        for index in range(first, last):
            try:
                answer = self._read_at(index)
            except (OSError, InvalidValueError) as error:
                detail = f"{self.path.name} changed while its answers were replayed ({error})"
                return Failure(FailureReason.NOT_RECORDED, detail)
            if _get_recorded_answer_key(answer) == handle:
                return answer.outcome
        return None

    def require_once(self) -> None:
        """Raise `UnreadableSourceError` if the file has two answers to one question."""
        for index in np.flatnonzero(self._hashes[1:] == self._hashes[:-1]):
            handle = _get_recorded_answer_key(self._read_at(int(index)))
            if handle == _get_recorded_answer_key(self._read_at(int(index) + 1)):
                raise _build_duplicate_answer_error(self.path, handle)

    def _read_at(self, index: int) -> ImportedAnswer:
        with self.path.open("rb") as file:
            file.seek(int(self._offsets[index]))
            return parse_imported_answer(parse_json_object(file.readline(LINE_BYTES)))


def open_recorded_reviewer(path: Path, *, name: str) -> RecordedReviewer:
    """Open a file of recorded answers as a reviewer.

    The file is JSONL, CSV, TSV or Parquet, as for `unreel score`. Raise `UnreadableSourceError` if
    the file cannot be read, a row has no answer, or a question has two answers.
    """
    if path.suffix.lower() in _HELD:
        # The rows of these files have no offset to read by.
        outcomes: dict[str, Reply | Failure] = {}
        for answer in read_answer_file(path):
            if isinstance(answer, Rejected):
                raise UnreadableSourceError(str(path), f"no recorded answer in {answer}", FORM)
            if (handle := _get_recorded_answer_key(answer)) in outcomes:
                raise _build_duplicate_answer_error(path, handle)
            outcomes[handle] = answer.outcome
        return RecordedReviewer(name, outcomes)
    hashes, offsets = array("Q"), array("Q")
    try:
        for offset, handle in _iter_line_keys(path):
            hashes.append(_hash_recorded_answer_key(handle))
            offsets.append(offset)
    except OSError as error:
        if isinstance(error, UnreadableSourceError):
            raise
        raise UnreadableSourceError(str(path), f"cannot be read ({error})", FORM) from error
    unsorted = np.frombuffer(hashes, dtype=np.uint64) if hashes else np.empty(0, np.uint64)
    order = np.argsort(unsorted, kind="stable")
    sorted_offsets = np.frombuffer(offsets, dtype=np.uint64) if offsets else np.empty(0, np.uint64)
    recording = RecordedAnswersFile(path, unsorted[order], sorted_offsets[order])
    recording.require_once()
    return RecordedReviewer(name, recording)


def _build_duplicate_answer_error(path: Path, handle: str) -> UnreadableSourceError:
    problem = f"two answers about {handle.rpartition(_AND)[2]!r}"
    return UnreadableSourceError(str(path), problem, "Keep one answer for each clip")


def _iter_line_keys(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line's byte offset and key; raise `UnreadableSourceError` for an invalid line."""
    offset = 0
    with path.open("rb") as lines:
        for number in itertools.count(1):
            line = lines.readline(LINE_BYTES)
            if not line:
                return
            if len(line) == LINE_BYTES and not line.endswith(b"\n"):
                raise UnreadableSourceError(
                    str(path), f"line {number} is longer than {LINE_BYTES} bytes", FORM
                )
            if line.strip():
                try:
                    answer = parse_imported_answer(parse_json_object(line))
                except InvalidValueError as error:
                    problem = f"line {number} contains no recorded answer ({error})"
                    raise UnreadableSourceError(str(path), problem, FORM) from error
                yield offset, _get_recorded_answer_key(answer)
            offset += len(line)


def _get_recorded_answer_key(answer: ImportedAnswer) -> str:
    return answer.key or _format_clip_key(answer.name, answer.protocol)


def _iter_request_keys(request: ReviewRequest) -> Iterator[str]:
    """Yield all keys under which an answer to `request` may be recorded, the most specific first."""
    yield request.key
    clips = [clip_input.clip for clip_input in request.inputs]
    paths = [clip.location.split("/") for clip in clips]
    # The ends of the paths, longest first: `a/b.mp4`, `b.mp4`.
    ends = [["/".join(filter(None, parts[-n:])) for parts in paths] for n in range(_DEEPEST, 0, -1)]
    named: list[list[str]] = [[request.name], [clip.id for clip in clips], *ends]
    joined = [between.join(names) for names in named for between in (BETWEEN, "+")]
    for protocol in (request.instrument.protocol, ""):
        for name in dict.fromkeys(joined):
            yield _format_clip_key(name, protocol)


def _format_clip_key(clip: str, protocol: str) -> str:
    return f"{protocol}{_AND}{clip}"


def _hash_recorded_answer_key(handle: str) -> int:
    return int.from_bytes(blake2b(handle.encode(), digest_size=8).digest(), "big")
