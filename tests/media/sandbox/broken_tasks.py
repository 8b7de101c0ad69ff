"""A task that works, and one that cannot be warmed up."""

from collections.abc import Mapping
from typing import Any, BinaryIO

from unreel.media.messages import Task, TaskReplyPayload


def fine(file: BinaryIO, request: Mapping[str, Any]) -> TaskReplyPayload:
    """Answer without reading."""
    return TaskReplyPayload({})


def broken(file: BinaryIO, request: Mapping[str, Any]) -> TaskReplyPayload:
    """Fail on every file, as a task does whose library is damaged."""
    raise ImportError


TASKS: Mapping[str, Task] = {"fine": fine, "probe": broken}
