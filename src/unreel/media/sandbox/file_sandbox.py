"""Sandbox that runs tasks on untrusted files, each in a confined child process."""

import json
import os
import stat
import threading
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from unreel.core.errors import SandboxError, UnknownNameError, raise_if_machine_error
from unreel.core.failure import Failure, FailureReason
from unreel.media.messages import OnPart, TaskReplyPayload
from unreel.media.sandbox.child import PROTECTION_TASK
from unreel.media.sandbox.protection import SandboxLimits, require_sandbox_layers
from unreel.media.sandbox.sandbox_call import ChildNotStartedError, SandboxCall
from unreel.media.sandbox.zygote_process import ZygoteProcess

# O_NONBLOCK: a path swapped for a FIFO after the check must not hang the caller.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


def open_regular_file(path: Path) -> int | Failure:
    """Open the regular file at `path` without blocking; return its descriptor, or a failure.

    The last component must not be a symbolic link. The parent folders may be: they belong to the
    user who named the path. A caller that trusts a link resolves the path first.
    """
    try:
        # Checked before opening, because opening a device can already have an effect.
        wrong = _find_file_kind_failure(path.lstat().st_mode)
        if wrong is not None:
            return wrong
        descriptor = os.open(path, _FLAGS)
    except (OSError, ValueError) as error:
        raise_if_machine_error(error)
        problem = (isinstance(error, OSError) and error.strerror) or str(error)
        return Failure(FailureReason.NOT_A_FILE, f"it cannot be opened: {problem}")
    wrong = _find_file_kind_failure(os.fstat(descriptor).st_mode)
    if wrong is not None:
        os.close(descriptor)
        return wrong
    return descriptor


def _find_file_kind_failure(mode: int) -> Failure | None:
    if stat.S_ISREG(mode):
        return None
    kind = _KINDS.get(stat.S_IFMT(mode), "not a regular file")
    return Failure(FailureReason.NOT_A_FILE, f"it is {kind}")


_ATTEMPTS = 2


class FileSandbox:
    """Task runner for untrusted files: each file is opened in a confined child of its own.

    The zygote starts with the first call and again after it was lost. It warms up the tasks in
    `needs` when it starts, and any other at its first call. Calls from several threads run
    concurrently. `close`, or leaving the context, ends all processes.

    A machine that lacks seccomp is rejected with a `SandboxError`, unless `without_seccomp`.
    """

    def __init__(
        self,
        limits: SandboxLimits | None = None,
        *,
        tasks: str = "unreel.media.tasks:TASKS",
        needs: Iterable[str] = (),
        without_seccomp: bool = False,
    ) -> None:
        self.limits = limits or SandboxLimits()
        self._target = tasks
        self._needs = frozenset(needs)
        self._without_seccomp = without_seccomp
        self._lock = threading.Lock()
        self._zygote: ZygoteProcess | None = None

    def __call__(
        self, task: str, path: Path, request: Mapping[str, Any], on_part: OnPart | None = None
    ) -> TaskReplyPayload | Failure:
        """Run `task` on the file at `path`, and return its payload or the failure."""
        return self.run(task, path, request=request, on_part=on_part)[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(
        self,
        task: str,
        path: Path,
        *,
        request: Mapping[str, Any],
        limits: SandboxLimits | None = None,
        on_part: OnPart | None = None,
    ) -> tuple[TaskReplyPayload | Failure, float | None]:
        """Run `task` on the file at `path`; return the result and the child's peak memory in MiB.

        `limits` replace the limits of the sandbox. The memory is `None` if it is unknown.
        """
        file = open_regular_file(path)
        if isinstance(file, Failure):
            return file, None
        try:
            return self._run(task, file, request, limits or self.limits, on_part)
        finally:
            os.close(file)

    def wake(self) -> None:
        """Start the zygote in the background; the first call waits for it and reports its errors."""

        def start() -> None:
            with suppress(SandboxError):
                self._live_zygote()

        threading.Thread(target=start, daemon=True).start()

    def protection(self) -> frozenset[str]:
        """Return the layers, as tested by a child; raise `SandboxError` if none can be confined."""
        nothing = os.memfd_create("nothing")
        try:
            result, _ = self._run(PROTECTION_TASK, nothing, {}, self.limits)
        finally:
            os.close(nothing)
        if isinstance(result, Failure):
            raise SandboxError(f"no file can be opened safely here: {result}")
        return frozenset(result.header["layers"])

    def close(self) -> None:
        """Stop the zygote and all children; the next call starts a new zygote."""
        with self._lock:
            if self._zygote is not None:
                self._zygote.end()
            self._zygote = None

    def _run(
        self,
        task: str,
        file: int,
        request: Mapping[str, Any],
        limits: SandboxLimits,
        on_part: OnPart | None = None,
    ) -> tuple[TaskReplyPayload | Failure, float | None]:
        message = json.dumps({"task": task, "request": request, "limits": asdict(limits)}).encode()
        for _ in range(_ATTEMPTS):
            zygote = self._live_zygote(task)
            if task not in (*zygote.tasks, PROTECTION_TASK):
                raise UnknownNameError("media task", task, zygote.tasks)
            try:
                with SandboxCall(zygote, file, task=task, message=message, limits=limits) as call:
                    return call.wait_for_result(on_part)
            except ChildNotStartedError:
                with self._lock:
                    if self._zygote is zygote:
                        self._zygote = None
                zygote.end()
        return Failure(FailureReason.WORKER_DIED, "no child could be started"), None

    def _live_zygote(self, *tasks: str) -> ZygoteProcess:
        with self._lock:
            # A fork of this process must not share the zygote, which monitors only its own caller.
            if self._zygote is None or self._zygote.owner != os.getpid():
                zygote = ZygoteProcess(self._target, self._needs.union(tasks))
                weakref.finalize(self, zygote.end)
                try:
                    require_sandbox_layers(zygote.missing, without_seccomp=self._without_seccomp)
                except SandboxError:
                    zygote.end()
                    raise
                self._zygote = zygote
            return self._zygote
