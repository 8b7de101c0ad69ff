"""System calls allowed in a confined child, enforced by seccomp.

An allow list is feasible because the child is born warm: its libraries are loaded, its file and its
pipe are open, so decoding needs memory, locks, clocks and those two descriptors. Everything else,
and every call that a later kernel adds, fails with EPERM: a library that can do without goes on,
and one that cannot fails like on a damaged file.
"""

import errno
import mmap
from typing import Any, Final

ALLOWED: Final = (
    # The file and the pipe. No `open`, no `stat`, no `lseek`, no `ioctl`, no `fcntl`.
    "close",
    "pread64",
    "preadv",
    "preadv2",
    "read",
    "write",
    "writev",
    # Memory that is already there. `mmap` and `mprotect` have rules of their own below.
    "brk",
    "mremap",
    "munmap",
    # The one thread of this process, and its locks.
    "exit",
    "exit_group",
    "futex",
    "gettid",
    "getpid",
    "restart_syscall",
    "sched_getaffinity",
    "sched_yield",
    # Signals that this process raises by its own faults.
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "sigaltstack",
    # Clocks and chance.
    "clock_getres",
    "clock_gettime",
    "clock_nanosleep",
    "getrandom",
    "gettimeofday",
    "nanosleep",
)

ADVICES: Final = (mmap.MADV_DONTNEED, mmap.MADV_FREE)
"""How the C library gives memory back. No other advice is needed, and some have been ways in."""


def child_filter(seccomp: Any) -> Any:
    """Build the system call filter with the `pyseccomp` module: once in the zygote, loaded in each child."""
    rules = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))
    for name in ALLOWED:
        if seccomp.resolve_syscall(seccomp.system_arch(), name) >= 0:
            rules.add_rule(seccomp.ALLOW, name)
    # Private memory of no file, and never executable: the memory limit then sees every page, and
    # bytes that a decoder wrote cannot be run.
    unshared = seccomp.Arg(
        3, seccomp.MASKED_EQ, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS, mmap.MAP_ANONYMOUS
    )
    not_executable = seccomp.Arg(2, seccomp.MASKED_EQ, mmap.PROT_EXEC, 0)
    rules.add_rule(seccomp.ALLOW, "mmap", not_executable, unshared)
    rules.add_rule(seccomp.ALLOW, "mprotect", not_executable)
    for advice in ADVICES:
        rules.add_rule(seccomp.ALLOW, "madvise", seccomp.Arg(2, seccomp.EQ, advice))
    # Neither threads nor processes: no rule lets `clone` pass, and nothing here decodes with more
    # than one thread. "No such call" makes the C library try `clone` instead of giving up.
    rules.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")
    return rules
