"""Sandboxed child, which receives a request, drops all rights, reads the file, replies and exits."""

import io
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, cast

from unreel.core.errors import MediaError
from unreel.core.failure import Failure, FailureReason
from unreel.media.messages import Task, TaskReplyPayload, deliver_task_result
from unreel.media.sandbox.confine import ConfinementLayers, confine_process, die_with_parent
from unreel.media.sandbox.protection import SandboxLimits
from unreel.media.sandbox.reply_format import SandboxReplyPart, encode_sandbox_reply

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class FileDescriptorReader(io.RawIOBase):
    """Read-only file object over a descriptor; it reveals neither the file's name nor the descriptor.

    A demuxer that knows a file's name may open related files; without a name it cannot. The object
    reads at its own position, so it needs neither `lseek` nor `fstat` once the child is confined.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._size = os.fstat(descriptor).st_size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        count = os.preadv(self._descriptor, [buffer], self._position)
        self._position += count
        return count

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        origins = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}
        if whence not in origins:
            raise ValueError(f"whence must be 0, 1 or 2, not {whence}")
        target = origins[whence] + offset
        if target < 0:
            raise ValueError(f"a position must not be negative, not {target}")
        self._position = target
        return target

    def tell(self) -> int:
        return self._position


PROTECTION_TASK = "protection"

NO_TASKS: Mapping[str, Task] = {}
"""Empty table of tasks, for callers that need only `PROTECTION_TASK`: no module has to be loaded."""


def serve_sandbox_request(
    tasks: Mapping[str, Task],
    layers: ConfinementLayers,
    *,
    file: int,
    request: int,
    reply: int,
    parent: int,
) -> NoReturn:
    """Run the one requested task in this child, send the reply, and exit, also after an error.

    `file`, `request` (JSON) and `reply` (a pipe) are descriptors; `parent` is the zygote's process
    id.
    """
    exit_code = 1
    try:
        os.setpgid(0, 0)
        die_with_parent(layers.libc, parent=parent)
        _write_descriptor(reply, _build_task_reply(tasks, layers, file, request, reply))
        exit_code = 0
    finally:
        os._exit(exit_code)


def _build_task_reply(
    tasks: Mapping[str, Task], layers: ConfinementLayers, file: int, request: int, reply: int
) -> Sequence[bytes]:
    # Encoded now, because a child without free memory cannot encode it.
    out_of_memory = encode_sandbox_reply(
        Failure(FailureReason.OUT_OF_MEMORY, "the memory limit was reached")
    )

    def write_part(part: TaskReplyPayload) -> None:
        _write_descriptor(reply, encode_sandbox_reply(SandboxReplyPart(part)))

    try:
        message = json.loads(os.pread(request, os.fstat(request).st_size, 0))
        edges = sorted({0, 1, 2, file, reply, os.sysconf("SC_OPEN_MAX")})
        for below, above in itertools.pairwise(edges):
            if below + 1 < above:  # An empty range from 0 closes everything.
                os.closerange(below + 1, above)
        reader = FileDescriptorReader(file)
        effective = confine_process(layers, SandboxLimits(**message["limits"]))
        if message["task"] == PROTECTION_TASK:
            return encode_sandbox_reply(TaskReplyPayload(header={"layers": effective}))
        result = tasks[message["task"]](cast("BinaryIO", reader), message["request"])
        return encode_sandbox_reply(deliver_task_result(result, write_part))
    except MediaError as error:
        return out_of_memory if _is_memory_failure(error) else encode_sandbox_reply(error.failure)
    except MemoryError:
        return out_of_memory
    except BaseException as error:  # noqa: BLE001  a hostile file may raise anything at all
        detail = f"the task failed with {type(error).__name__}: {error}"
        return encode_sandbox_reply(Failure(FailureReason.WORKER_DIED, detail))


def _is_memory_failure(error: BaseException) -> bool:
    """Return whether a memory error caused `error`, which a task reported as damage of the file."""
    causes: list[Any] = [error.__cause__, error.__context__]
    return any(
        isinstance(cause, MemoryError) or _is_memory_failure(cause) for cause in causes if cause
    )


def _write_descriptor(descriptor: int, pieces: Sequence[bytes]) -> None:
    for piece in pieces:
        left = memoryview(piece)
        while left:
            left = left[os.write(descriptor, left) :]
