"""One run of a program in its sandbox, with limits on time, memory, threads and output."""

import contextlib
import os
import selectors
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from unreel.core.failure import Failure, FailureReason
from unreel.reviewers.external.syscall_filter import open_syscall_filter

MEMORY_BYTES = 16 << 30
"""Maximum memory of a program; at most half of the machine's memory."""
OUTPUT_BYTES = 1 << 20
"""Maximum size of a program's output in bytes; a score takes one line."""
_N_THREADS = 512
_FILE_BYTES = 1 << 30
_ERROR_BYTES = 4096
"""Number of bytes at the end of a program's stderr that are kept for the log."""
_POLL_S = 0.1
_THREADS_FIELD, _RESIDENT_FIELD = 17, 21
"""Positions in `/proc/PID/stat`, counted after the name of the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRunResult:
    """Exit status and output of a program that ended by itself."""

    status: int
    """Exit status; 128 plus the signal if a signal ended the program."""
    was_started: bool
    """Whether the sandbox was set up and the program could be executed."""
    output: bytes
    errors: bytes
    """End of stderr, for a log and never for a table: it may contain data that the program read."""


def build_sandboxed_command(
    bubblewrap: Sequence[str], command: Sequence[str], *, rules: int, report: int, memory: int
) -> list[str]:
    """Return the command that runs `command` in bubblewrap with resource limits and a seccomp filter.

    Args:
        bubblewrap: Bubblewrap and its options, see `build_bubblewrap_command`.
        command: Program and arguments.
        rules: Descriptor of the seccomp filter, which the started process must inherit.
        report: Descriptor that bubblewrap writes its status to, inherited as well.
        memory: Maximum size in bytes of a process's data.
    """
    prlimit = shutil.which("prlimit") or "prlimit"
    limits = [prlimit, f"--data={memory}", f"--fsize={_FILE_BYTES}", "--core=0", "--"]
    options = ["--seccomp", str(rules), "--json-status-fd", str(report), "--"]
    return [*bubblewrap, *options, *limits, *command]


def run_sandboxed_program(
    bubblewrap: Sequence[str],
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    seconds: float,
    stop: threading.Event,
    memory_bytes: int = MEMORY_BYTES,
) -> ProgramRunResult | Failure:
    """Run a program to its end; a failure if it exceeds a limit, or when `stop` is set."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    memory = min(physical // 2, memory_bytes)
    rules = open_syscall_filter()
    report, report_end = os.pipe()
    shared_before = _measure_shared_bytes()
    output, errors = bytearray(), bytearray()
    next_look_s = time.monotonic()
    deadline_s = next_look_s + seconds
    try:
        with subprocess.Popen(  # noqa: S603  the recipe's own program
            build_sandboxed_command(
                bubblewrap, command, rules=rules, report=report_end, memory=memory
            ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=(rules, report_end),
            env=dict(environment),
            start_new_session=True,  # Ctrl-C in a terminal reaches only the caller.
        ) as process:
            streams = {process.stdout: output, process.stderr: errors}
            with selectors.DefaultSelector() as selector:
                for stream in streams:
                    selector.register(stream, selectors.EVENT_READ)  # type: ignore[arg-type]  # pipes
                while selector.get_map() or process.poll() is None:
                    for key, _ in selector.select(_POLL_S):
                        data = os.read(key.fd, 1 << 16)
                        streams[key.fileobj] += data  # type: ignore[index]  # registered above
                        if not data:
                            selector.unregister(key.fileobj)
                    del errors[:-_ERROR_BYTES]
                    failure = None
                    if len(output) > OUTPUT_BYTES:
                        detail = f"the program wrote more than {OUTPUT_BYTES} bytes"
                        failure = Failure(FailureReason.REPLY_TOO_LARGE, detail)
                    elif time.monotonic() >= next_look_s:  # not after each piece of output
                        next_look_s = time.monotonic() + _POLL_S
                        grown = _measure_shared_bytes() - shared_before
                        failure = _find_exceeded_limit(process.pid, memory, grown)
                    if stop.is_set():
                        failure = Failure(FailureReason.STOPPED, "the program was stopped")
                    elif time.monotonic() > deadline_s:
                        detail = f"the program gave no answer within {seconds:g} s"
                        failure = Failure(FailureReason.OUT_OF_TIME, detail)
                    if failure is not None:
                        # Bubblewrap is the parent of the sandbox: the kernel ends all processes with it,
                        # and the streams end with the last of them.
                        process.kill()
                        for key in selector.get_map().values():
                            while os.read(key.fd, 1 << 16):
                                pass
                        return failure
        os.close(report_end)
        report_end = -1
        was_started = b"exit-code" in os.read(report, 1 << 16)
    finally:
        for descriptor in (rules, report, report_end):
            if descriptor >= 0:
                os.close(descriptor)
    return ProgramRunResult(
        status=process.returncode if process.returncode >= 0 else 128 - process.returncode,
        was_started=was_started and not errors.startswith(b"prlimit: "),
        output=bytes(output),
        errors=bytes(errors),
    )


def _find_exceeded_limit(pid: int, memory: int, shared_growth: int) -> Failure | None:
    """Return the failure of a program whose processes exceed a limit together.

    Memory that no process has mapped, such as that of a memfd, counts by the growth of the machine's
    shared memory. Resident sizes count shared pages several times, so the slower exact measure decides.
    """
    n_threads, resident = 0, dict[int, int]()
    for process in _iter_process_tree(pid):
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{process}/stat").read_text(encoding="latin-1")
            fields = stat.rpartition(")")[2].split()
            n_threads += int(fields[_THREADS_FIELD])
            resident[process] = int(fields[_RESIDENT_FIELD]) * os.sysconf("SC_PAGE_SIZE")
    is_over = n_threads > _N_THREADS or shared_growth > memory
    if not is_over and sum(resident.values()) > memory:
        is_over = sum(_measure_process_bytes(*each) for each in resident.items()) > memory
    if is_over:
        detail = f"the program took more than {memory >> 20} MiB or {_N_THREADS} threads"
        return Failure(FailureReason.OUT_OF_MEMORY, detail)
    return None


def _iter_process_tree(pid: int) -> Iterator[int]:
    pending = [pid]
    while pending:
        current = pending.pop()
        yield current
        for task in Path(f"/proc/{current}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                pending += map(int, task.read_text(encoding="ascii").split())


def _measure_process_bytes(pid: int, resident: int) -> int:
    """Return the proportional set size of a process; `resident` if the kernel does not report it."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return resident


def _measure_shared_bytes() -> int:
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("Shmem:"):
            return int(line.split()[1]) << 10
    return 0
