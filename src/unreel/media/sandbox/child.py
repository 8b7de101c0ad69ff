"""The one life of a child: take the request, give up all rights, read the file, answer, end."""

import itertools
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, NoReturn, cast

from unreel.core.errors import MediaError
from unreel.core.failure import Failure, FailureReason
from unreel.media.payload import Task, TaskPayload, finish
from unreel.media.sandbox.confine import ConfinementLayers, confine, die_with_parent
from unreel.media.sandbox.descriptor import DescriptorFile
from unreel.media.sandbox.limits import SandboxLimits
from unreel.media.sandbox.wire import ReplyPart, encode

PROTECTION_TASK: Final = "protection"
"""Built-in task that reads nothing and reports the active layers."""

NO_TASKS: Final[Mapping[str, Task]] = {}
"""A table for who asks for the protection alone: nothing has to be loaded for it."""

_OUT_OF_MEMORY: Final = Failure(FailureReason.OUT_OF_MEMORY, "the memory limit was reached")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildDescriptors:
    """The descriptors that a child is given."""

    file: int
    """The stranger's file, open for reading."""
    request: int
    """The caller's words, as JSON."""
    reply: int
    """A pipe to the caller."""


def serve_request(
    tasks: Mapping[str, Task], layers: ConfinementLayers, *, ends: ChildDescriptors, parent: int
) -> NoReturn:
    """Answer one request and exit this process, also after an error."""
    exit_code = 1
    try:
        os.setpgid(0, 0)
        die_with_parent(layers.libc, parent=parent)
        _write_all(ends.reply, _build_task_reply(tasks, layers, ends))
        exit_code = 0
    finally:
        os._exit(exit_code)


def _build_task_reply(
    tasks: Mapping[str, Task], layers: ConfinementLayers, ends: ChildDescriptors
) -> Sequence[bytes]:
    # Made now, because a child that has no memory left cannot make it.
    out_of_memory = encode(_OUT_OF_MEMORY)
    try:
        asked = json.loads(_read_all(ends.request))
        _close_all_but({0, 1, 2, ends.file, ends.reply})
        file = DescriptorFile(ends.file)
        held = confine(layers, SandboxLimits(**asked["limits"]))
        if asked["task"] == PROTECTION_TASK:
            return encode(TaskPayload(header={"layers": held}))
        result = tasks[asked["task"]](cast("BinaryIO", file), asked["request"])
        return encode(finish(result, lambda part: _write_all(ends.reply, encode(ReplyPart(part)))))
    except MediaError as error:
        return out_of_memory if _is_memory_failure(error) else encode(error.failure)
    except MemoryError:
        return out_of_memory
    except BaseException as error:  # noqa: BLE001  a hostile file may raise anything at all
        detail = f"the task failed with {type(error).__name__}: {error}"
        return encode(Failure(FailureReason.WORKER_DIED, detail))


def _is_memory_failure(error: BaseException) -> bool:
    """Return whether `error` was caused by a memory error that a task reported as file damage."""
    causes: list[Any] = [error.__cause__, error.__context__]
    return any(
        isinstance(cause, MemoryError) or _is_memory_failure(cause) for cause in causes if cause
    )


def _read_all(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _write_all(descriptor: int, pieces: Sequence[bytes]) -> None:
    for piece in pieces:
        left = memoryview(piece)
        while left:
            left = left[os.write(descriptor, left) :]


def _close_all_but(kept: set[int]) -> None:
    edges = sorted({*kept, os.sysconf("SC_OPEN_MAX")})
    for below, above in itertools.pairwise(edges):
        if below + 1 < above:  # An empty range from 0 closes everything.
            os.closerange(below + 1, above)
