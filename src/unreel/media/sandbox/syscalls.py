"""What a confined child may still ask of the kernel: an allow list, checked by seccomp.

An allow list is feasible because the child is born warm: its libraries are loaded, its file and its
pipe are open, so decoding needs memory, threads, clocks and those two descriptors. Everything else,
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
    "madvise",
    "mremap",
    "munmap",
    # Threads of this process.
    "exit",
    "exit_group",
    "futex",
    "gettid",
    "getpid",
    "restart_syscall",
    "rseq",
    "sched_getaffinity",
    "sched_yield",
    "set_robust_list",
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

_CLONE_THREAD: Final = 0x00010000
_CLONE_NEW: Final = 0x7E020000
"""All flags that make a namespace."""


def child_filter(seccomp: Any) -> Any:
    """The filter, built once in the zygote from the `pyseccomp` module and loaded in each child."""
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
    # Threads, but no processes. `clone3` hides its flags behind a pointer that a filter cannot
    # follow; "no such call" makes the C library use `clone`.
    thread_only = seccomp.Arg(0, seccomp.MASKED_EQ, _CLONE_THREAD | _CLONE_NEW, _CLONE_THREAD)
    rules.add_rule(seccomp.ALLOW, "clone", thread_only)
    rules.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")
    return rules
