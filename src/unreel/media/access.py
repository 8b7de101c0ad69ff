"""The way to a reader: hardened by default, in process for clips of one's own."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from unreel.core.failure import Failure
from unreel.core.settings import Settings
from unreel.media.payload import Payload
from unreel.media.reader import MediaReader, run_trusted
from unreel.media.sandbox import Limits, Sandbox

PATIENCE: Final[Mapping[str, int]] = {"normalise": 20, "render": 20, "scan": 20}
"""Tasks that decode or encode a whole clip may take this many times as long as one that samples it."""


@contextmanager
def media_reader(settings: Settings, *, trusted: bool) -> Iterator[MediaReader]:
    """A reader that opens each file in a confined child, or in this process when `trusted`."""
    if trusted:
        yield MediaReader(run_trusted, settings.media_pixels)
        return
    limits = Limits(seconds=settings.media_seconds, memory_mb=settings.media_mb)
    with Sandbox(limits) as sandbox:
        yield MediaReader(_Confined(sandbox), settings.media_pixels)


@dataclass(frozen=True, slots=True)
class _Confined:
    """The sandbox with the time that each task needs."""

    sandbox: Sandbox

    def __call__(self, task: str, path: Path, request: Mapping[str, Any]) -> Payload | Failure:
        limits = self.sandbox.limits
        longer = replace(limits, seconds=limits.seconds * PATIENCE.get(task, 1))
        return self.sandbox.run(task, path, request=request, limits=longer).result
