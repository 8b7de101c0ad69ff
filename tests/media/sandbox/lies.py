"""How a child that a file has taken over changes its reply: fields, parts, blobs or bare bytes.

A file that lies carries the name of its lie; the task that tells it finds it there.
"""

import os
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, NoReturn

from hostile_tasks import _framed, _pipe

from unreel.media.messages import Parts, Task, TaskReplyPayload

MARK: Final = b"lie:"
KIB: Final = 1024
MIB: Final = 1024 * KIB
HUGE: Final = "1" + 29 * "0" + "/1"
NEVER: Final = "8589934592/1"
"""The last instant that is believed: 272 years."""

Result = TaskReplyPayload | Parts
Lie = Callable[[Result], Result]


@dataclass(frozen=True)
class Told:
    """A lie and the task that tells it; a `quiet` one is well-formed, so it may pass as an answer."""

    task: str
    lie: Lie
    quiet: bool = False


def lying(name: str, clip: bytes) -> bytes:
    """The mp4 file `clip`, marked so that its child tells the lie called `name`."""
    mark = MARK + name.encode()
    return clip + struct.pack(">I4s", 8 + len(mark), b"free") + mark


def lie_of(file: BinaryIO) -> str:
    """The name of the lie in `file`, or nothing."""
    file.seek(-min(100, file.seek(0, os.SEEK_END)), os.SEEK_END)
    _, _, name = file.read().rpartition(MARK)
    file.seek(0)
    return name.decode(errors="replace")


def write(*pieces: bytes) -> None:
    pipe = _pipe()
    for piece in pieces:
        left = memoryview(piece)
        while left:
            left = left[os.write(pipe, left) :]


def in_header(change: Callable[[dict[str, Any]], object]) -> Lie:
    """The last header, changed."""

    def tell(result: Result) -> Result:
        if isinstance(result, TaskReplyPayload):
            change(result.header)
            return result
        return _changed_end(result, change)

    return tell


def _changed_end(parts: Parts, change: Callable[[dict[str, Any]], object]) -> Parts:
    last = yield from parts
    change(last.header)
    return last


def in_frames(change: Callable[[list[TaskReplyPayload]], object]) -> Lie:
    """The parts, changed as a list."""

    def tell(result: Result) -> Parts:
        assert not isinstance(result, TaskReplyPayload)
        kept: list[TaskReplyPayload] = []
        last = yield from keep_parts(result, kept)
        change(kept)
        yield from kept
        return last

    return tell


def keep_parts(parts: Parts, into: list[TaskReplyPayload]) -> Parts:
    while True:
        try:
            into.append(next(parts))
        except StopIteration as end:
            last: TaskReplyPayload = end.value
            return last
        if False:
            yield  # A generator that keeps to itself what it was given.


def in_each(**fields: Any) -> Lie:
    return in_frames(lambda parts: [part.header.update(fields) for part in parts])


def in_last(**fields: Any) -> Lie:
    return in_frames(lambda parts: parts[-1].header.update(fields))


def in_blobs(change: Callable[[list[bytes]], object]) -> Lie:
    def tell(result: Result) -> Result:
        assert isinstance(result, TaskReplyPayload)
        blobs = list(result.blobs)
        change(blobs)
        return TaskReplyPayload(result.header, tuple(blobs))

    return tell


def in_blob(place: int, blob: Callable[[bytes], bytes]) -> Lie:
    return in_blobs(lambda blobs: blobs.__setitem__(place, blob(blobs[place])))


def raw(*pieces: bytes, then: Callable[[], object] | None = None) -> Lie:
    """Bytes straight into the pipe, and the end."""

    def tell(_result: Result) -> NoReturn:
        write(*pieces)
        if then:
            then()
        os._exit(0)

    return tell


def drip() -> NoReturn:
    while True:
        write(b" ")
        time.sleep(0.05)


def flood(piece: bytes) -> NoReturn:
    while True:
        write(piece)


def part_of(header: object, blob: bytes = b"") -> bytes:
    return _framed({"part": header, "blobs": [len(blob)] if blob else []}) + blob


def honest_then(more: bytes) -> Lie:
    """The honest reply, byte for byte, and more behind it."""

    def tell(result: Result) -> NoReturn:
        assert isinstance(result, TaskReplyPayload)
        write(_framed({"header": result.header, "blobs": []}), more)
        os._exit(0)

    return tell


def in_parts(result: Result) -> Parts:
    yield TaskReplyPayload({"a": 1})
    assert isinstance(result, TaskReplyPayload)
    return result


def filled(opening: bytes, piece: bytes, closing: bytes, *, size: int = 256 * KIB) -> bytes:
    room = size - len(opening) - len(closing)
    return _framed(opening + piece * (room // len(piece)) + closing)


def lying_task(task: str, honest: Task, lies: Mapping[str, Told]) -> Task:
    """`honest`, but for files that carry one of `lies` about `task`."""

    def run(file: BinaryIO, request: Mapping[str, Any]) -> Result:
        told = lies.get(lie_of(file))
        result = honest(file, request)
        return result if told is None or told.task != task else told.lie(result)

    return run
