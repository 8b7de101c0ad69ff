"""Running a task on a stranger's file, in a child that can do nothing else."""

import json
import os
import threading
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

from unreel.core.errors import SandboxError, UnknownNameError
from unreel.core.failure import Failure, FailureReason
from unreel.media.payload import OnPart, TaskPayload, TaskRunner
from unreel.media.sandbox.call import CallOutcome, NotStartedError, SandboxCall
from unreel.media.sandbox.child import PROTECTION_TASK
from unreel.media.sandbox.limits import SandboxLimits
from unreel.media.sandbox.open_path import open_regular
from unreel.media.sandbox.process import ZygoteProcess
from unreel.media.sandbox.protection import ProtectionReport, accept_missing

_KIND: Final = "media task"
_ATTEMPTS: Final = 2


class FileSandbox:
    """Runs tasks, each file in a confined child of its own; a `TaskRunner` for untrusted files.

    The zygote starts with the first call and again after it was lost. It warms up the tasks that `needs`
    names when it starts, and any other at its first call. Calls from several threads run at the same
    time. `close`, or leaving the context, ends all processes.

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
    ) -> TaskPayload | Failure:
        """Run `task` and return its payload, or a `Failure` with the reason."""
        return self.run(task, path, request=request, on_part=on_part).result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def with_limits(self, limits: SandboxLimits) -> TaskRunner:
        """Return a runner with the same sandbox and other limits, for a task that may take longer."""
        return partial(_run_within, self, limits)

    def run(
        self,
        task: str,
        path: Path,
        *,
        request: Mapping[str, Any],
        limits: SandboxLimits | None = None,
        on_part: OnPart | None = None,
    ) -> CallOutcome:
        """Run `task` under `limits` (default: the sandbox's limits); return its result and resource usage."""
        file = open_regular(path)
        if isinstance(file, Failure):
            return CallOutcome(result=file)
        limits = limits or self.limits
        try:
            return self._run(task, file, request=request, limits=limits, on_part=on_part)
        finally:
            os.close(file)

    def wake(self) -> None:
        """Start the zygote without waiting: the first call waits and reports errors."""

        def start() -> None:
            with suppress(SandboxError):
                self._live_zygote()

        threading.Thread(target=start, daemon=True).start()

    def protection(self) -> ProtectionReport:
        """Return the effective layers, tested by a child."""
        nothing = os.memfd_create("nothing")
        try:
            outcome = self._run(PROTECTION_TASK, nothing, request={}, limits=self.limits)
        finally:
            os.close(nothing)
        if isinstance(outcome.result, Failure):
            problem = f"no file can be opened safely here: {outcome.result}"
            raise SandboxError(problem)
        return ProtectionReport(frozenset(outcome.result.header["layers"]))

    def close(self) -> None:
        """End the zygote and every child. The next call starts a new one."""
        with self._lock:
            if self._zygote is not None:
                self._zygote.end()
            self._zygote = None

    def _run(
        self,
        task: str,
        file: int,
        *,
        request: Mapping[str, Any],
        limits: SandboxLimits,
        on_part: OnPart | None = None,
    ) -> CallOutcome:
        words = json.dumps({"task": task, "request": request, "limits": asdict(limits)}).encode()
        for _ in range(_ATTEMPTS):
            zygote = self._live_zygote(task)
            if task not in (*zygote.tasks, PROTECTION_TASK):
                raise UnknownNameError(_KIND, task, zygote.tasks)
            try:
                with SandboxCall(zygote, file, task=task, words=words, limits=limits) as call:
                    return call.outcome(on_part)
            except NotStartedError:
                self._forget(zygote)
        return CallOutcome(result=Failure(FailureReason.WORKER_DIED, "no child could be started"))

    def _live_zygote(self, *tasks: str) -> ZygoteProcess:
        with self._lock:
            # A fork of this process must not share the zygote, which watches its own caller only.
            if self._zygote is None or self._zygote.owner != os.getpid():
                self._zygote = self._start(self._needs.union(tasks))
            return self._zygote

    def _start(self, names: Iterable[str]) -> ZygoteProcess:
        zygote = ZygoteProcess(self._target, names)
        weakref.finalize(self, zygote.end)
        try:
            accept_missing(zygote.missing, without_seccomp=self._without_seccomp)
        except SandboxError:
            zygote.end()
            raise
        return zygote

    def _forget(self, lost: ZygoteProcess) -> None:
        with self._lock:
            if self._zygote is lost:
                self._zygote = None
        lost.end()


def _run_within(
    sandbox: FileSandbox,
    limits: SandboxLimits,
    task: str,
    path: Path,
    request: Mapping[str, Any],
    on_part: OnPart | None = None,
) -> TaskPayload | Failure:
    return sandbox.run(task, path, request=request, limits=limits, on_part=on_part).result
