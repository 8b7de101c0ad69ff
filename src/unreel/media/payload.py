"""What crosses the border between the process that opens a file and the one that asked.

Plain JSON and raw bytes only: a child that a hostile file has taken over can send wrong data, but
nothing that runs on arrival.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from unreel.core.failure import Failure


@dataclass(frozen=True, slots=True)
class Payload:
    """A task's result: a JSON object and the bytes that go with it."""

    header: dict[str, Any]
    blobs: tuple[bytes, ...] = ()


Task = Callable[[BinaryIO, Mapping[str, Any]], Payload]
"""Work on one opened file. It raises `MediaError` where the file is at fault."""


class TaskRunner(Protocol):
    """Runs a task of `unreel.media.tasks` on a file: in this process, or in a confined child."""

    def __call__(self, task: str, path: Path, request: Mapping[str, Any]) -> Payload | Failure:
        """The task's payload, or the reason why there is none; never an exception of the file's."""
        ...
