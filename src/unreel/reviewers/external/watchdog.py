"""Watchdog that kills a process and its descendants if they exceed memory or thread limits.

The module is loaded by its file path, without its package.
"""

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

OVER_LIMIT: Final = 117
"""Exit status of a program that was killed because it exceeded its memory or thread limit."""
_LOOK_S: Final = 0.1
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_N_THREADS: Final = 17
_RESIDENT_PAGES: Final = 21


def watch(pid: int, *, memory_bytes: int, n_threads: int) -> int:
    """Wait for the child process `pid`, and kill it if it exceeds a limit; return its exit status.

    The status is 128 plus the signal if a signal ended it, and `OVER_LIMIT` if it was killed here.
    The memory is that of all descendants, with shared pages counted once. Pages that no process has
    mapped, such as those of a memfd or a tmpfs, count by the growth of the machine's shared memory.
    """
    shared_before = _measure_shared_bytes()
    ended = os.pidfd_open(pid)
    over = False
    while not select.select([ended], [], [], _LOOK_S)[0]:
        over = (
            _exceeds_limits(pid, memory_bytes, n_threads)
            or _measure_shared_bytes() - shared_before > memory_bytes
        )
        if over:
            os.kill(pid, signal.SIGKILL)
            break
    os.close(ended)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if over:
        return OVER_LIMIT
    return code if code >= 0 else 128 - code


def _exceeds_limits(pid: int, memory_bytes: int, most_threads: int) -> bool:
    n_threads, resident = 0, dict[int, int]()
    for each in _iter_process_tree(pid):
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{each}/stat").read_text(encoding="latin-1")
            fields = stat.rpartition(")")[2].split()
            n_threads += int(fields[_N_THREADS])
            resident[each] = int(fields[_RESIDENT_PAGES]) * _PAGE_BYTES
        if n_threads > most_threads:
            return True
    # Resident sizes count shared pages several times; the exact measure is slower.
    return (
        sum(resident.values()) > memory_bytes
        and sum(_measure_process_bytes(*each) for each in resident.items()) > memory_bytes
    )


def _iter_process_tree(pid: int) -> Iterator[int]:
    waiting = [pid]
    while waiting:
        current = waiting.pop()
        yield current
        for task in Path(f"/proc/{current}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                waiting += map(int, task.read_text(encoding="ascii").split())


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
