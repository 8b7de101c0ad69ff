"""Sandbox that runs tasks on untrusted files, each in a confined child process."""

import contextlib
import fcntl
import io
import json
import math
import os
import platform
import select
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
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
from unreel.media.sandbox.protection import MIB, SandboxLimits, require_sandbox_layers
from unreel.media.sandbox.reply_format import (
    MalformedSandboxReplyError,
    OversizedSandboxReplyError,
    SandboxReplyPart,
    decode_sandbox_reply,
)
from unreel.media.sandbox.zygote import LONGEST_MESSAGE, STARTED

_START_SECONDS = 60
_END_SECONDS = 5

# Isolated mode ignores PYTHON* variables and the working folder, so the search path is passed on:
# the zygote imports the same modules as its caller.
_BOOT = (
    "import sys; sys.path[:] = sys.argv[5:]; "
    "from unreel.media.sandbox.zygote import main; "
    "main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4].split(','))"
)

_ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",  # ldconfig, which finds libseccomp
    # One thread and one heap: a fork keeps only the thread that called it, and reserved address
    # space counts against the limit.
    "MALLOC_ARENA_MAX": "1",
    # A child keeps the memory of one frame for the next: by default glibc frees large blocks at
    # once; allocating them again causes half of a scan's page faults and a tenth of its time.
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(512 << 20),
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class ZygoteProcess:
    """Running zygote with the task table at `target` loaded and the tasks `names` warmed up.

    Raise `SandboxError` if the zygote did not start.
    """

    def __init__(self, target: str, names: Iterable[str]) -> None:
        if platform.system() != "Linux":
            raise SandboxError("untrusted files are opened on Linux only")
        self.owner = os.getpid()
        self._control, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with child_end:
            arguments = [str(child_end.fileno()), str(self.owner), target, ",".join(names)]
            self._process = subprocess.Popen(  # noqa: S603  our own interpreter and code
                [
                    sys.executable,
                    "-I",
                    "-c",
                    _BOOT,
                    *arguments,
                    *[entry for entry in sys.path if Path(entry).is_absolute()],
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[child_end.fileno()],
                env=_ENVIRONMENT,
                cwd="/",
                start_new_session=True,  # Ctrl-C in a terminal is for the caller.
            )
        try:
            message = self._first_words()
            self.tasks: tuple[str, ...] = tuple(message["tasks"])
            self.missing: tuple[str, ...] = tuple(message["missing"])
        except BaseException:
            self.end()
            raise

    @property
    def pid(self) -> int:
        """Return the process id of the zygote."""
        return self._process.pid

    def hand_over(self, task: str, *descriptors: int) -> None:
        """Send the name of `task` and copies of `descriptors` to the zygote process; raise `OSError` if the process has ended."""
        socket.send_fds(self._control, [task.encode()], descriptors)

    def end(self) -> None:
        """Close the connection and wait until the zygote and all of its children have exited."""
        self._control.close()
        if self.owner != os.getpid():
            return  # A fork of the caller must not stop the process.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Kill the zygote immediately."""
        self._control.close()
        self._process.kill()
        self._process.wait()

    def _first_words(self) -> dict[str, Any]:
        self._control.settimeout(_START_SECONDS)
        try:
            message = json.loads(self._control.recv(LONGEST_MESSAGE) or "{}")
        except TimeoutError:
            message = {"problem": f"the process sent no message for {_START_SECONDS} s"}
        self._control.settimeout(None)
        if "tasks" not in message:
            problem = message.get("problem", "the process ended immediately")
            raise SandboxError(f"the process that opens media files did not start: {problem}")
        return dict(message)


_START_SECONDS = 60
"""Timeout for the start of a child. It takes milliseconds, or less than a second if the task is warmed up first."""
_DEATH_SECONDS = 1
"""Timeout for the exit of a child that has closed its pipe; a hostile one may keep running."""
_KILL_SECONDS = 5
"""Timeout for the exit of a killed child, which exits at once unless the kernel is stuck in a read."""
_PIPE_BYTES = MIB
_LONGEST_STEP_S = 1.0


class ChildNotStartedError(Exception):
    """Error of a sandbox call whose child was not started; the file was not read, so a retry is safe."""


class _ReplyTimeoutError(Exception):
    pass


class _ChildEndedEarlyError(Exception):
    pass


class _CallTimer:
    """Timer of one sandbox call of `seconds`; a pause of this process counts as one second at most."""

    def __init__(self, seconds: float) -> None:
        self._left_s = seconds
        self._checked_at_s = time.monotonic()

    def wait_for(self, descriptor: int) -> None:
        """Wait until `descriptor` has bytes or is closed; raise `_ReplyTimeoutError` when time is over."""
        while True:
            now_s = time.monotonic()
            self._left_s -= min(now_s - self._checked_at_s, _LONGEST_STEP_S)
            self._checked_at_s = now_s
            if self._left_s <= 0:
                raise _ReplyTimeoutError
            if _wait_until_readable(descriptor, now_s + min(self._left_s, _LONGEST_STEP_S)):
                return


class SandboxCall:
    """One request for `task` to the sandbox; leaving the context kills the child if it still runs.

    Raise `ChildNotStartedError` if the zygote did not accept the request.
    """

    def __init__(
        self, zygote: ZygoteProcess, file: int, *, task: str, message: bytes, limits: SandboxLimits
    ) -> None:
        self._zygote = zygote
        self._limits = limits
        with contextlib.ExitStack() as stack:
            self._line, their_line = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            stack.callback(their_line.close)
            self._reply, their_reply = os.pipe2(os.O_CLOEXEC)
            stack.callback(os.close, their_reply)
            with contextlib.suppress(OSError):  # Over the user's quota: only slower.
                fcntl.fcntl(their_reply, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            request = os.memfd_create("request")
            stack.callback(os.close, request)
            os.write(request, message)
            try:
                zygote.hand_over(task, file, request, their_reply, their_line.fileno())
            except OSError as error:
                self.close()
                raise_if_machine_error(error)
                raise ChildNotStartedError from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the call; the zygote then kills the child if the child still runs."""
        self._line.close()
        os.close(self._reply)

    def wait_for_result(
        self, on_part: OnPart | None = None
    ) -> tuple[TaskReplyPayload | Failure, float | None]:
        """Wait for the reply or a limit, then for the child's exit; `on_part` receives the reply's parts.

        Return the result and the child's maximum resident set in MiB; `None` if that is unknown.
        """
        if not self._speaks_within(_START_SECONDS):
            self._zygote.kill()
            raise ChildNotStartedError
        if self._hear() != STARTED:
            raise ChildNotStartedError
        result = self._read_reply(on_part)
        if result is None and self._speaks_within(_DEATH_SECONDS):
            report = self._read_exit_report()
            return _build_child_exit_failure(report, self._limits), _get_peak_mb(report)
        with contextlib.suppress(OSError):
            self._line.send(b"end")
        report = self._read_exit_report() if self._speaks_within(_KILL_SECONDS) else None
        broken = Failure(FailureReason.WORKER_DIED, "the child broke off the reply")
        return result or broken, _get_peak_mb(report)

    def _read_reply(self, on_part: OnPart | None) -> TaskReplyPayload | Failure | None:
        """Return the child's reply, or the failure of an exceeded limit; `None` if the child ended early."""
        timer, limits = _CallTimer(self._limits.seconds), self._limits
        try:
            while True:
                reply = decode_sandbox_reply(
                    lambda size: self._take(size, timer), reply_bytes=limits.reply_bytes
                )
                if not isinstance(reply, SandboxReplyPart):
                    return reply
                if on_part is None:
                    raise MalformedSandboxReplyError("parts that were not requested")
                on_part(reply.payload)
        except _ChildEndedEarlyError:
            return None
        except _ReplyTimeoutError:
            detail = f"no reply within {limits.seconds:g} s"
            return Failure(FailureReason.OUT_OF_TIME, detail)
        except OversizedSandboxReplyError:
            detail = f"the reply is longer than {limits.reply_bytes} bytes"
            return Failure(FailureReason.OUT_OF_MEMORY, detail)
        except MemoryError:
            detail = "this process has too little memory left for its reply"
            return Failure(FailureReason.OUT_OF_MEMORY, detail)
        except MalformedSandboxReplyError as error:
            return Failure(FailureReason.WORKER_DIED, f"the reply cannot be read: {error}")

    def _take(self, size: int, timer: _CallTimer) -> bytes:
        # Grows as bytes arrive: a size that a child announces takes no memory.
        buffer = io.BytesIO()
        while left := size - buffer.tell():
            timer.wait_for(self._reply)
            piece = os.read(self._reply, min(left, _PIPE_BYTES))
            if not piece:
                raise _ChildEndedEarlyError
            buffer.write(piece)
        return buffer.getvalue()

    def _speaks_within(self, seconds: float) -> bool:
        return _wait_until_readable(self._line.fileno(), time.monotonic() + seconds)

    def _read_exit_report(self) -> dict[str, Any] | None:
        """Return the zygote's report of the child's exit; `None` if the zygote ended first."""
        report = self._hear()
        return dict(json.loads(report)) if report else None

    def _hear(self) -> bytes:
        # If the zygote closes the socket before it has read our "end", the kernel reports a reset
        # once, before the last message.
        for _ in range(2):
            with contextlib.suppress(ConnectionResetError):
                return self._line.recv(LONGEST_MESSAGE)
        return b""


def _get_peak_mb(report: dict[str, Any] | None) -> float | None:
    return None if report is None else report["peak_kb"] / 1024


def _build_child_exit_failure(report: dict[str, Any] | None, limits: SandboxLimits) -> Failure:
    if report is None:
        return Failure(FailureReason.WORKER_DIED, "the child and the zygote ended together")
    code = report["exit_code"]
    # The kernel kills a child at its limit of processor time; a busy caller may notice it later.
    if code == -signal.SIGXCPU or (
        code == -signal.SIGKILL and report["cpu_seconds"] > limits.seconds
    ):
        return Failure(FailureReason.OUT_OF_TIME, "the child used up its processor time")
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return Failure(FailureReason.WORKER_DIED, f"the child died of {name}")
    detail = f"the child ended with code {code} before its reply was whole"
    return Failure(FailureReason.WORKER_DIED, detail)


def _wait_until_readable(descriptor: int, deadline: float) -> bool:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    left_ms = math.ceil(max(0.0, deadline - time.monotonic()) * 1000)
    return bool(poller.poll(left_ms))


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

    The last component must not be a symbolic link. The parent folders may be, because the
    user named the path. A caller that trusts a link resolves the path first.
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
        return Failure(FailureReason.NOT_A_FILE, f"the file cannot be opened: {problem}")
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
    concurrently. A machine that lacks seccomp is rejected with a `SandboxError`, unless
    `without_seccomp`.
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
