"""The way to a reader: hardened by default, in process for clips of one's own."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from unreel.core.failure import Failure
from unreel.core.settings import EnvironmentSettings
from unreel.core.span import MICROSECONDS
from unreel.media.payload import OnPart, TaskPayload
from unreel.media.sandbox import FileSandbox, SandboxLimits

if TYPE_CHECKING:
    from unreel.media.reader import MediaReader

PATIENCE: Final[Mapping[str, int]] = {"normalise": 20, "render": 20, "scan": 20}
"""Tasks that decode or encode a whole clip may take this many times as long as one that samples it."""
_LONGEST_S: Final = 24 * 3600
"""No copy takes longer, whatever length a file claims."""


def open_sandbox(
    settings: EnvironmentSettings,
    *,
    tasks: str = "unreel.media.tasks:TASKS",
    needs: Iterable[str] = (),
) -> FileSandbox:
    """Return a sandbox with the limits of `settings`, which warms up the tasks that `needs` names."""
    limits = SandboxLimits(seconds=settings.media_seconds, memory_mb=settings.media_mb)
    without_seccomp = bool(settings.media_without_seccomp)
    return FileSandbox(limits, tasks=tasks, needs=needs, without_seccomp=without_seccomp)


def require_protection(settings: EnvironmentSettings, *, trusted: bool) -> None:
    """Raise before a long job if this machine lacks protection, not at its first clip in a worker.

    Raises:
        SandboxError: Untrusted files cannot be opened safely here.
    """
    if not trusted:
        with open_sandbox(settings, tasks="unreel.media.sandbox.child:NO_TASKS") as sandbox:
            sandbox.protection()


@contextmanager
def media_reader(
    settings: EnvironmentSettings, *, trusted: bool, at_once: Iterable[str] = ()
) -> "Iterator[MediaReader]":
    """Yield a reader that opens each file in a confined child, or in this process when `trusted`.

    Args:
        settings: limits of the child.
        trusted: whether files are opened in this process.
        at_once: tasks that are sure to be requested soon. The confined process starts now and warms them
            up while this process loads; any other task is warmed up at its first request.
    """
    with open_sandbox(settings, needs=at_once) as sandbox:
        if at_once and not trusted:
            sandbox.wake()
        from unreel.media.reader import MediaReader, run_trusted  # a third of a second

        run = run_trusted if trusted else _TimedSandbox(sandbox, settings.annotate_pace)
        yield MediaReader(run, settings.media_pixels)


@dataclass(frozen=True, slots=True)
class _TimedSandbox:
    """The sandbox with the time that each task needs."""

    sandbox: FileSandbox
    annotate_pace: int

    def __call__(
        self, task: str, path: Path, request: Mapping[str, Any], on_part: OnPart | None = None
    ) -> TaskPayload | Failure:
        limits = self.sandbox.limits
        seconds = limits.seconds * PATIENCE.get(task, 1)
        if task == "annotate":
            grows_s = self.annotate_pace * request["duration_us"] / MICROSECONDS
            seconds = min(_LONGEST_S, seconds + grows_s)
        longer = replace(limits, seconds=seconds)
        asked = self.sandbox.run(task, path, request=request, limits=longer, on_part=on_part)
        return asked.result
