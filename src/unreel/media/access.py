"""The way to a reader: hardened by default, in process for clips of one's own."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from unreel.core.failure import Failure
from unreel.core.settings import Settings
from unreel.media.payload import Payload
from unreel.media.sandbox import Limits, Sandbox

if TYPE_CHECKING:
    from unreel.media.reader import MediaReader

PATIENCE: Final[Mapping[str, int]] = {"normalise": 20, "render": 20, "scan": 20}
"""Tasks that decode or encode a whole clip may take this many times as long as one that samples it."""


@contextmanager
def media_reader(
    settings: Settings, *, trusted: bool, at_once: bool = False
) -> "Iterator[MediaReader]":
    """A reader that opens each file in a confined child, or in this process when `trusted`.

    `at_once`: a file is sure to be opened soon, so what opens it warms up while this process loads.
    """
    limits = Limits(seconds=settings.media_seconds, memory_mb=settings.media_mb)
    with Sandbox(limits) as sandbox:
        if at_once and not trusted:
            sandbox.wake()
        from unreel.media.reader import MediaReader, run_trusted  # a third of a second

        run = run_trusted if trusted else _Confined(sandbox)
        yield MediaReader(run, settings.media_pixels)


@dataclass(frozen=True, slots=True)
class _Confined:
    """The sandbox with the time that each task needs."""

    sandbox: Sandbox

    def __call__(self, task: str, path: Path, request: Mapping[str, Any]) -> Payload | Failure:
        limits = self.sandbox.limits
        longer = replace(limits, seconds=limits.seconds * PATIENCE.get(task, 1))
        return self.sandbox.run(task, path, request=request, limits=longer).result
