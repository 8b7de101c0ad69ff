"""Opening of media readers, sandboxed by default or in this process, and the shipped sample clips."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unreel.core.failure import Failure
from unreel.core.settings import EnvironmentSettings
from unreel.core.span import MICROSECONDS
from unreel.media.messages import OnPart, TaskReplyPayload
from unreel.media.sandbox import FileSandbox, SandboxLimits

if TYPE_CHECKING:
    from unreel.media.reader import MediaReader


def read_sample_clip(name: str) -> bytes:
    """Return the bytes of the sample clip `name` in `media/samples/`."""
    return (Path(__file__).with_name("samples") / name).read_bytes()


TIME_FACTORS: Mapping[str, int] = {"normalise": 20, "render": 20, "scan": 20}
"""Factor of the time limit for each task that decodes or encodes a whole clip; 1 for all other tasks."""
_LONGEST_S = 24 * 3600
"""Maximum time limit of `annotate` in seconds, whatever duration a file declares."""


def open_file_sandbox(
    settings: EnvironmentSettings,
    *,
    tasks: str = "unreel.media.tasks:TASKS",
    needs: Iterable[str] = (),
) -> FileSandbox:
    """Return a sandbox for untrusted files; `needs` are the tasks that are warmed up when it starts."""
    limits = SandboxLimits(seconds=settings.media_seconds, memory_mb=settings.media_mb)
    without_seccomp = bool(settings.media_without_seccomp)
    return FileSandbox(limits, tasks=tasks, needs=needs, without_seccomp=without_seccomp)


def require_sandbox_protection(settings: EnvironmentSettings, *, trusted: bool) -> None:
    """Require that this machine can open untrusted files safely, before a long job starts.

    Raise `SandboxError` if files are not trusted, and the sandbox cannot be started or confined.
    """
    if not trusted:
        with open_file_sandbox(settings, tasks="unreel.media.sandbox.child:NO_TASKS") as sandbox:
            sandbox.protection()


@contextmanager
def open_media_reader(
    settings: EnvironmentSettings, *, trusted: bool, at_once: Iterable[str] = ()
) -> "Iterator[MediaReader]":
    """Open a media reader that opens each file in a sandbox, or in this process if `trusted`.

    The sandbox process starts now and warms up the tasks `at_once`; any other at its first
    request.
    """
    with open_file_sandbox(settings, needs=at_once) as sandbox:
        if at_once and not trusted:
            sandbox.wake()
        from unreel.media.reader import MediaReader, run_trusted_task  # takes 0.3 s

        def run_in_sandbox(
            task: str, path: Path, request: Mapping[str, Any], on_part: OnPart | None = None
        ) -> TaskReplyPayload | Failure:
            # Each kind of task has a time limit of its own.
            seconds = sandbox.limits.seconds * TIME_FACTORS.get(task, 1)
            if task == "annotate":
                duration_s = request["commentary"]["duration_us"] / MICROSECONDS
                seconds = min(_LONGEST_S, seconds + settings.annotate_pace * duration_s)
            limits = replace(sandbox.limits, seconds=seconds)
            return sandbox.run(task, path, request=request, limits=limits, on_part=on_part)[0]

        run = run_trusted_task if trusted else run_in_sandbox
        yield MediaReader(run, settings.media_pixels)
