"""Access to media: a reader, sandboxed by default and in process for trusted clips, and the shipped samples."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from unreel.core.failure import Failure
from unreel.core.settings import EnvironmentSettings
from unreel.core.span import MICROSECONDS
from unreel.media.messages import OnPart, TaskPayload
from unreel.media.sandbox import FileSandbox, SandboxLimits

if TYPE_CHECKING:
    from unreel.media.reader import MediaReader


def read_sample_clip(name: str) -> bytes:
    """Return the bytes of the sample clip `name` in `media/samples/`."""
    return (Path(__file__).with_name("samples") / name).read_bytes()


PATIENCE: Final[Mapping[str, int]] = {"normalise": 20, "render": 20, "scan": 20}
"""Tasks that decode or encode a whole clip may take this many times as long as one that samples it."""
_LONGEST_S: Final = 24 * 3600
"""No copy takes longer, whatever length a file claims."""


def open_file_sandbox(
    settings: EnvironmentSettings,
    *,
    tasks: str = "unreel.media.tasks:TASKS",
    needs: Iterable[str] = (),
) -> FileSandbox:
    """Return a sandbox with the limits of `settings`, which warms up the tasks that `needs` names."""
    limits = SandboxLimits(seconds=settings.media_seconds, memory_mb=settings.media_mb)
    without_seccomp = bool(settings.media_without_seccomp)
    return FileSandbox(limits, tasks=tasks, needs=needs, without_seccomp=without_seccomp)


def require_sandbox_protection(settings: EnvironmentSettings, *, trusted: bool) -> None:
    """Require, before a long job, that this machine can open files safely.

    Raises:
        SandboxError: Untrusted files cannot be opened safely here.
    """
    if not trusted:
        with open_file_sandbox(settings, tasks="unreel.media.sandbox.child:NO_TASKS") as sandbox:
            sandbox.protection()


@contextmanager
def open_media_reader(
    settings: EnvironmentSettings, *, trusted: bool, at_once: Iterable[str] = ()
) -> "Iterator[MediaReader]":
    """Open a media reader that opens each file in a sandbox, or in this process if `trusted`.

    Args:
        settings: Limits of the sandbox process.
        trusted: Whether files are opened in this process.
        at_once: Tasks that will be requested soon. The sandbox process starts now and warms them up
            in parallel; any other task is warmed up at its first request.
    """
    with open_file_sandbox(settings, needs=at_once) as sandbox:
        if at_once and not trusted:
            sandbox.wake()
        from unreel.media.reader import MediaReader, run_trusted_task  # a third of a second

        run = run_trusted_task if trusted else _TimedSandbox(sandbox, settings.annotate_pace)
        yield MediaReader(run, settings.media_pixels)


@dataclass(frozen=True, slots=True)
class _TimedSandbox:
    """Task runner that runs tasks in the sandbox, with a time limit for each kind of task."""

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
