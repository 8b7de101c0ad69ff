"""Confinement of a child before it reads a file: drops rights and limits resources."""

import contextlib
import ctypes
import errno
import math
import mmap
import os
import resource
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unreel.media.sandbox.capabilities import has_capabilities
from unreel.media.sandbox.protection import MIB, SandboxLimits

ALLOWED = (
    # The file and the pipe. No `open`, no `stat`, no `lseek`, no `ioctl`, no `fcntl`.
    "close",
    "pread64",
    "preadv",
    "preadv2",
    "read",
    "write",
    "writev",
    # Existing memory. `mmap` and `mprotect` have their own rules below.
    "brk",
    "mremap",
    "munmap",
    # The only thread of this process, and its locks.
    "exit",
    "exit_group",
    "futex",
    "gettid",
    "getpid",
    "restart_syscall",
    "sched_getaffinity",
    "sched_yield",
    # Signals that this process causes by its own errors.
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "sigaltstack",
    # Clocks and random numbers.
    "clock_getres",
    "clock_gettime",
    "clock_nanosleep",
    "getrandom",
    "gettimeofday",
    "nanosleep",
)

ADVICES = (mmap.MADV_DONTNEED, mmap.MADV_FREE)
"""Allowed `madvise` values: the C library frees memory with them. No others are needed; some were attack vectors."""


def build_sandbox_syscall_filter(seccomp: Any) -> Any:
    """Build the system call filter with the `pyseccomp` module: once in the zygote, loaded in each child."""
    rules = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))
    for name in ALLOWED:
        if seccomp.resolve_syscall(seccomp.system_arch(), name) >= 0:
            rules.add_rule(seccomp.ALLOW, name)
    # Only private memory without a file, and never executable: the memory limit then counts every
    # page, and bytes that a decoder wrote cannot be executed.
    unshared = seccomp.Arg(
        3, seccomp.MASKED_EQ, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS, mmap.MAP_ANONYMOUS
    )
    not_executable = seccomp.Arg(2, seccomp.MASKED_EQ, mmap.PROT_EXEC, 0)
    rules.add_rule(seccomp.ALLOW, "mmap", not_executable, unshared)
    rules.add_rule(seccomp.ALLOW, "mprotect", not_executable)
    for advice in ADVICES:
        rules.add_rule(seccomp.ALLOW, "madvise", seccomp.Arg(2, seccomp.EQ, advice))
    # Neither threads nor processes: no rule allows `clone`, and every decoder uses one thread only.
    # With ENOSYS the C library falls back to `clone` instead of failing.
    rules.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")
    return rules


_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38

_NET_ABI = 4
_SCOPE_ABI = 6

_STACK_BYTES = 8 * MIB
_UNBACKED_BYTES = 32 * MIB
"""Allowance for address space without memory, such as what an allocator reserves in advance."""


class ConfinementError(Exception):
    """Error for a confinement layer that the kernel has, but that a test found without effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfinementLayers:
    """Confinement layers of this machine and memory sizes of the zygote, detected before it forks."""

    libc: ctypes.CDLL
    landlock_abi: int
    syscall_filter: Any | None
    """System call filter; `None` if libseccomp or the kernel's seccomp is missing."""
    mapped_bytes: int
    data_bytes: int
    untouched_bytes: int
    """Part of `data_bytes` that a full warm-up never used, such as the workspace of NumPy's BLAS."""
    code_bytes: int
    """Size of the program code that the warm-up ran; more code is shared between processes and costs nothing."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the confinement layers that this machine lacks."""
        available = {"landlock": self.landlock_abi > 0, "seccomp": self.syscall_filter is not None}
        return tuple(layer for layer, is_there in available.items() if not is_there)


def detect_confinement_layers() -> ConfinementLayers:
    """Detect the confinement layers of this machine and measure the memory of this process."""
    syscall_filter = None
    with contextlib.suppress(ImportError, RuntimeError):  # RuntimeError if libseccomp is missing
        import pyseccomp

        if "Seccomp" in _read_status_fields():
            syscall_filter = build_sandbox_syscall_filter(pyseccomp)
    return ConfinementLayers(
        libc=ctypes.CDLL(None, use_errno=True),
        landlock_abi=_get_landlock_abi(),
        syscall_filter=syscall_filter,
        **_measure_memory_sizes(),
    )


def add_process_memory_sizes(layers: ConfinementLayers) -> ConfinementLayers:
    """Return `layers` with the current memory sizes of this process; call it after every warm-up."""
    return replace(layers, **_measure_memory_sizes())


def _measure_memory_sizes() -> dict[str, Any]:
    sizes = {
        name: int(value.split()[0])
        for name, value in _read_status_fields().items()
        if value.endswith(" kB")
    }
    return {
        "mapped_bytes": sizes["VmSize"] * 1024,
        "data_bytes": sizes["VmData"] * 1024,
        "untouched_bytes": max(0, sizes["VmData"] - sizes["RssAnon"]) * 1024,
        "code_bytes": sizes["RssFile"] * 1024,
    }


def die_with_parent(libc: ctypes.CDLL, *, parent: int) -> None:
    """Make this process exit when `parent` exits; exit now if `parent` has already exited."""
    _call_prctl(libc, _PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def confine_process(layers: ConfinementLayers, limits: SandboxLimits) -> tuple[str, ...]:
    """Drop all rights of this process that a task does not need, and return the effective layers.

    Capabilities, Landlock and seccomp are tested before they are reported as effective. Raise
    `ConfinementError` if the kernel has a layer, but it is not effective.
    """
    _call_prctl(layers.libc, _PR_SET_NO_NEW_PRIVS, 1)
    _call_prctl(layers.libc, _PR_SET_DUMPABLE, 0)
    if has_capabilities(layers.libc):
        raise ConfinementError("capabilities were given up and are there")
    effective = ["no-new-privileges", "no-capabilities", "undumpable"]
    _limit_resources(layers, limits)
    if layers.landlock_abi:
        _block_file_system(layers.landlock_abi)
        effective.append("landlock")
    # After Landlock, whose ruleset needs a descriptor; open descriptors stay open.
    _lower_resource_limit(resource.RLIMIT_NOFILE, 0)
    effective.append("rlimits")
    if layers.syscall_filter is not None:
        layers.syscall_filter.load()
        _expect_denial("seccomp", errno.EPERM, lambda: socket.socket(socket.AF_UNIX).close())
        effective.append("seccomp")
    return tuple(effective)


def _limit_resources(layers: ConfinementLayers, limits: SandboxLimits) -> None:
    # The resident set is only code, stack and private data, because the filter rejects shared
    # memory and mapped files. So the data limit alone keeps the sum below `memory_mb`, unless a
    # task uses memory that the warm-up did not use. Without a filter, the address-space limit
    # does the same less precisely.
    used_bytes = limits.memory_mb * MIB - layers.code_bytes - _STACK_BYTES
    data_bytes = used_bytes + layers.untouched_bytes
    added_bytes = max(0, data_bytes - layers.data_bytes)
    _lower_resource_limit(resource.RLIMIT_DATA, data_bytes)
    _lower_resource_limit(resource.RLIMIT_AS, layers.mapped_bytes + added_bytes + _UNBACKED_BYTES)
    _lower_resource_limit(resource.RLIMIT_STACK, _STACK_BYTES)
    # A second limit besides that of wall-clock time, which the caller enforces.
    _lower_resource_limit(resource.RLIMIT_CPU, math.ceil(limits.seconds) + 1)
    _lower_resource_limit(resource.RLIMIT_FSIZE, 0)
    _lower_resource_limit(resource.RLIMIT_CORE, 0)
    _lower_resource_limit(resource.RLIMIT_NPROC, 0)


def _lower_resource_limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (allowed, allowed))


def _block_file_system(abi: int) -> None:
    """Block opening any path; from ABI 4 also TCP, from ABI 6 also signals and abstract sockets."""
    from landlock import FSAccess
    from landlock.plumbing import RulesetAttr, get_create_ruleset, get_restrict_self

    class Attributes(RulesetAttr):  # type: ignore[misc]  # the package is not typed
        """Fields that the package does not define yet; older kernels require them to be 0."""

        _fields_ = (("handled_access_net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))

    denied = Attributes(
        FSAccess.all(), 0b11 if abi >= _NET_ABI else 0, 0b11 if abi >= _SCOPE_ABI else 0
    )
    ctypes.set_errno(0)  # The package treats a stale errno as a failure.
    rules = get_create_ruleset()(ctypes.byref(denied), ctypes.sizeof(denied), 0)
    get_restrict_self()(rules, 0)
    os.close(rules)
    _expect_denial("landlock", errno.EACCES, lambda: os.close(os.open("/", os.O_RDONLY)))


def _expect_denial(layer: str, code: int, attempt: Callable[[], None]) -> None:
    try:
        attempt()
    except OSError as error:
        if error.errno == code:
            return
        raise ConfinementError(f"{layer} answered an attempt with {error}") from error
    raise ConfinementError(f"{layer} let an attempt pass")


def _get_landlock_abi() -> int:
    try:
        from landlock import LandlockError, landlock_abi_version
    except ImportError:
        return 0
    ctypes.set_errno(0)
    try:
        return int(landlock_abi_version())
    except LandlockError:
        return 0


def _call_prctl(libc: ctypes.CDLL, option: int, value: int) -> None:
    if libc.prctl(option, ctypes.c_ulong(value), *[ctypes.c_ulong(0)] * 3) != 0:
        raise ConfinementError(f"prctl {option} failed: {os.strerror(ctypes.get_errno())}")


def _read_status_fields() -> dict[str, str]:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
