"""One call of a sandbox task: it sends the file to a child and waits for the reply or a limit."""

import contextlib
import fcntl
import io
import json
import math
import os
import select
import signal
import socket
import time
from dataclasses import dataclass
from typing import Any, Self

from unreel.core.errors import raise_if_machine_error
from unreel.core.failure import Failure, FailureReason
from unreel.media.messages import OnPart, TaskReplyPayload
from unreel.media.sandbox.protection import MIB, SandboxChildUsage, SandboxLimits
from unreel.media.sandbox.reply_format import (
    MalformedSandboxReplyError,
    OversizedSandboxReplyError,
    SandboxReplyPart,
    decode_sandbox_reply,
)
from unreel.media.sandbox.zygote import LONGEST_MESSAGE, STARTED
from unreel.media.sandbox.zygote_process import ZygoteProcess

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
        self._looked_s = time.monotonic()

    def wait_for(self, descriptor: int) -> None:
        """Wait until `descriptor` has bytes or is closed; raise `_ReplyTimeoutError` when time is over."""
        while True:
            now_s = time.monotonic()
            self._left_s -= min(now_s - self._looked_s, _LONGEST_STEP_S)
            self._looked_s = now_s
            if self._left_s <= 0:
                raise _ReplyTimeoutError
            if _wait_until_readable(descriptor, now_s + min(self._left_s, _LONGEST_STEP_S)):
                return


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxCallOutcome:
    """Result of one sandbox call and the resource usage of its child; `None` if that is unknown."""

    result: TaskReplyPayload | Failure
    usage: SandboxChildUsage | None = None


class SandboxCall:
    """One request for `task` to the sandbox; leaving the context kills the child if it still runs.

    Raises:
        ChildNotStartedError: The zygote did not accept the request.
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

    def outcome(self, on_part: OnPart | None = None) -> SandboxCallOutcome:
        """Wait for the reply or a limit, then for the child's exit; `on_part` receives the reply's parts."""
        self._await_start()
        result = self._reply_or_limit(on_part)
        if result is None and self._speaks_within(_DEATH_SECONDS):
            report = self._report()
            return SandboxCallOutcome(
                result=_build_child_exit_failure(report, self._limits),
                usage=_parse_child_usage(report),
            )
        with contextlib.suppress(OSError):
            self._line.send(b"end")
        report = self._report() if self._speaks_within(_KILL_SECONDS) else None
        broken = Failure(FailureReason.WORKER_DIED, "its child broke off its reply")
        return SandboxCallOutcome(result=result or broken, usage=_parse_child_usage(report))

    def _reply_or_limit(self, on_part: OnPart | None) -> TaskReplyPayload | Failure | None:
        """Return the child's reply, or the failure of an exceeded limit; `None` if the child ended early."""
        try:
            return self._listen(on_part)
        except (
            _ReplyTimeoutError,
            OversizedSandboxReplyError,
            MalformedSandboxReplyError,
            MemoryError,
        ) as error:
            return _build_no_reply_failure(error, self._limits)
        except _ChildEndedEarlyError:
            return None

    def _listen(self, on_part: OnPart | None) -> TaskReplyPayload | Failure:
        watch = _CallTimer(self._limits.seconds)
        while True:
            reply = decode_sandbox_reply(
                lambda size: self._take(size, watch), reply_bytes=self._limits.reply_bytes
            )
            if not isinstance(reply, SandboxReplyPart):
                return reply
            if on_part is None:
                raise MalformedSandboxReplyError("it has parts that were not requested")
            on_part(reply.payload)

    def _await_start(self) -> None:
        if not self._speaks_within(_START_SECONDS):
            self._zygote.kill()
            raise ChildNotStartedError
        if self._hear() != STARTED:
            raise ChildNotStartedError

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
        """Return whether the zygote sends data or exits within `seconds`."""
        return _wait_until_readable(self._line.fileno(), time.monotonic() + seconds)

    def _report(self) -> dict[str, Any] | None:
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


def _build_no_reply_failure(error: Exception, limits: SandboxLimits) -> Failure:
    match error:
        case _ReplyTimeoutError():
            detail = f"it gave no reply within {limits.seconds:g} s"
            return Failure(FailureReason.OUT_OF_TIME, detail)
        case OversizedSandboxReplyError():
            detail = f"its reply is longer than {limits.reply_bytes} bytes"
            return Failure(FailureReason.OUT_OF_MEMORY, detail)
        case MemoryError():
            detail = "this process has too little memory left for its reply"
            return Failure(FailureReason.OUT_OF_MEMORY, detail)
        case _:
            return Failure(FailureReason.WORKER_DIED, f"its reply cannot be read: {error}")


def _parse_child_usage(report: dict[str, Any] | None) -> SandboxChildUsage | None:
    if report is None:
        return None
    return SandboxChildUsage(peak_mb=report["peak_kb"] / 1024, cpu_seconds=report["cpu_seconds"])


def _build_child_exit_failure(report: dict[str, Any] | None, limits: SandboxLimits) -> Failure:
    if report is None:
        return Failure(FailureReason.WORKER_DIED, "its child and the zygote ended together")
    code = report["exit_code"]
    # The kernel kills a child at its limit of processor time; a busy caller may notice it later.
    if code == -signal.SIGXCPU or (
        code == -signal.SIGKILL and report["cpu_seconds"] > limits.seconds
    ):
        return Failure(FailureReason.OUT_OF_TIME, "it used up its processor time")
    if code < 0:
        return Failure(FailureReason.WORKER_DIED, f"its child died of {_format_signal_name(-code)}")
    detail = f"its child ended with code {code} before its reply was whole"
    return Failure(FailureReason.WORKER_DIED, detail)


def _format_signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _wait_until_readable(descriptor: int, deadline: float) -> bool:
    """Wait until `descriptor` has bytes or is closed; return `False` if `deadline` passes first."""
    scoring_input = select.poll()
    scoring_input.register(descriptor, select.POLLIN)
    left_ms = math.ceil(max(0.0, deadline - time.monotonic()) * 1000)
    return bool(scoring_input.poll(left_ms))
