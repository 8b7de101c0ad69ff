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
from typing import Any, Self

from unreel.core.errors import raise_if_machine_error
from unreel.core.failure import Failure, FailureReason
from unreel.media.messages import OnPart, TaskReplyPayload
from unreel.media.sandbox.protection import MIB, SandboxLimits
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
        broken = Failure(FailureReason.WORKER_DIED, "its child broke off its reply")
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
                    raise MalformedSandboxReplyError("it has parts that were not requested")
                on_part(reply.payload)
        except _ChildEndedEarlyError:
            return None
        except _ReplyTimeoutError:
            detail = f"it gave no reply within {limits.seconds:g} s"
            return Failure(FailureReason.OUT_OF_TIME, detail)
        except OversizedSandboxReplyError:
            detail = f"its reply is longer than {limits.reply_bytes} bytes"
            return Failure(FailureReason.OUT_OF_MEMORY, detail)
        except MemoryError:
            detail = "this process has too little memory left for its reply"
            return Failure(FailureReason.OUT_OF_MEMORY, detail)
        except MalformedSandboxReplyError as error:
            return Failure(FailureReason.WORKER_DIED, f"its reply cannot be read: {error}")

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
        return Failure(FailureReason.WORKER_DIED, "its child and the zygote ended together")
    code = report["exit_code"]
    # The kernel kills a child at its limit of processor time; a busy caller may notice it later.
    if code == -signal.SIGXCPU or (
        code == -signal.SIGKILL and report["cpu_seconds"] > limits.seconds
    ):
        return Failure(FailureReason.OUT_OF_TIME, "it used up its processor time")
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return Failure(FailureReason.WORKER_DIED, f"its child died of {name}")
    detail = f"its child ended with code {code} before its reply was whole"
    return Failure(FailureReason.WORKER_DIED, detail)


def _wait_until_readable(descriptor: int, deadline: float) -> bool:
    """Wait until `descriptor` has bytes or is closed; return `False` if `deadline` passes first."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    left_ms = math.ceil(max(0.0, deadline - time.monotonic()) * 1000)
    return bool(poll.poll(left_ms))
