"""Messages between the process that opens a file and its caller.

Plain JSON and raw bytes only: a child that a hostile file has taken over can send wrong data, but
nothing that runs on arrival, and nothing that the asking process would need a decoder for.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from unreel.core.failure import Failure


@dataclass(frozen=True, slots=True)
class TaskPayload:
    """A task's result, or a part of it: a JSON object and the bytes that go with it."""

    header: dict[str, Any]
    blobs: tuple[bytes, ...] = ()


Parts = Generator[TaskPayload, None, TaskPayload]
"""A result that would be long as a whole: parts on the way, what remains to be said at the end."""
Task = Callable[[BinaryIO, Mapping[str, Any]], TaskPayload | Parts]
"""Work on one opened file. It raises `MediaError` where the file is at fault."""
OnPart = Callable[[TaskPayload], None]
"""Hears each part as it arrives; what it raises ends the task."""


def finish(result: TaskPayload | Parts, on_part: OnPart) -> TaskPayload:
    """Pass each part of `result` to `on_part`, and return the final payload."""
    if isinstance(result, TaskPayload):
        return result
    while True:
        try:
            part = next(result)
        except StopIteration as end:
            last: TaskPayload = end.value
            return last
        on_part(part)


class TaskRunner(Protocol):
    """Runs a task of `unreel.media.tasks` on a file: in this process, or in a confined child."""

    def __call__(
        self,
        task: str,
        path: Path,
        request: Mapping[str, Any],
        on_part: OnPart | None = None,
    ) -> TaskPayload | Failure:
        """Return the task's payload, or the failure; a faulty file never raises an exception.

        If `on_part` is missing, a reply in parts is a failure.
        """
        ...
