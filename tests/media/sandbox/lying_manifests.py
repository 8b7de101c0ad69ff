"""Lies about a file's origin: a table of its own, because nothing of FFmpeg has to be loaded for it."""

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final

from lies import Lie, Told, in_blobs, in_header, in_parts, lying_task, raw

from unreel.media.messages import Task, TaskReplyPayload


def _manifest_lies() -> Iterator[tuple[str, Lie]]:
    yield "manifest-found", in_header(lambda header: header.update(found="gold"))
    yield "manifest-text", in_header(lambda header: header.update(signer="x" * 200_000))
    yield "manifest-list", in_header(lambda header: header.update(actions=["x"] * 20_000))
    yield "manifest-blob", in_blobs(lambda blobs: blobs.append(b"x"))
    yield "manifest-null", in_header(lambda header: header.update(title=None))
    yield "manifest-parts", in_parts
    yield "manifest-silence", raw()


MANIFEST_LIES: Final = {name: Told("manifest", lie) for name, lie in _manifest_lies()}


def _absent(_file: BinaryIO, _request: Mapping[str, Any]) -> TaskReplyPayload:
    return TaskReplyPayload({"found": "absent"})


TASKS: Final[Mapping[str, Task]] = {"manifest": lying_task("manifest", _absent, MANIFEST_LIES)}
