"""Confinement of a child before it reads a file: it drops rights and limits its resources."""

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
from typing import Any, Final

from unreel.media.sandbox.capabilities import has_capabilities
from unreel.media.sandbox.protection import MIB, SandboxLimits

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


def build_sandbox_syscall_filter(seccomp: Any) -> Any:
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


_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_NO_NEW_PRIVS: Final = 38

_NET_ABI: Final = 4
_SCOPE_ABI: Final = 6

_STACK_BYTES: Final = 8 * MIB
_UNBACKED_BYTES: Final = 32 * MIB
"""Address space without memory behind it, such as what an allocator reserves ahead."""


class ConfinementError(Exception):
    """Error for a confinement layer that the kernel has, but that a test found without effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfinementLayers:
    """Confinement layers of this machine and memory sizes of the zygote, detected before it forks."""

    libc: ctypes.CDLL
    landlock_abi: int
    """0 where the kernel has no Landlock."""
    syscall_filter: Any | None
    """None where libseccomp or the kernel's seccomp is missing."""
    mapped_bytes: int
    """Address space of the warm zygote."""
    data_bytes: int
    """The part of it that is private and writable."""
    untouched_bytes: int
    """The part of that which a full warm-up never used, such as the work space of NumPy's BLAS."""
    code_bytes: int
    """Program code that the warm-up ran; further code is shared between processes and costs nothing."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the confinement layers that this machine lacks."""
        available = {"landlock": self.landlock_abi > 0, "seccomp": self.syscall_filter is not None}
        return tuple(layer for layer, is_there in available.items() if not is_there)


def detect_confinement_layers() -> ConfinementLayers:
    """Detect the confinement layers of this machine and measure the memory of this process."""
    return ConfinementLayers(
        libc=ctypes.CDLL(None, use_errno=True),
        landlock_abi=_get_landlock_abi(),
        syscall_filter=_find_syscall_filter(),
        **_measure_memory_sizes(),
    )


def add_process_memory_sizes(layers: ConfinementLayers) -> ConfinementLayers:
    """Return `layers` with the current memory sizes of this process; call it after every warm-up."""
    return replace(layers, **_measure_memory_sizes())


def _measure_memory_sizes() -> dict[str, Any]:
    sizes = _read_status_kilobytes()
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

    Capabilities, Landlock and seccomp are tested before they are reported as effective.

    Raises:
        ConfinementError: The kernel has a layer, but it is not effective.
    """
    _call_prctl(layers.libc, _PR_SET_NO_NEW_PRIVS, 1)
    _call_prctl(layers.libc, _PR_SET_DUMPABLE, 0)
    if has_capabilities(layers.libc):
        msg = "capabilities were given up and are there"
        raise ConfinementError(msg)
    effective = ["no-new-privileges", "no-capabilities", "undumpable"]
    _limit_resources(layers, limits)
    if layers.landlock_abi:
        _block_file_system(layers.landlock_abi)
        effective.append("landlock")
    # After Landlock, whose rules are a descriptor; what is open stays open.
    _lower_resource_limit(resource.RLIMIT_NOFILE, 0)
    effective.append("rlimits")
    if layers.syscall_filter is not None:
        layers.syscall_filter.load()
        _expect_denial("seccomp", errno.EPERM, _open_test_socket)
        effective.append("seccomp")
    return tuple(effective)


def _limit_resources(layers: ConfinementLayers, limits: SandboxLimits) -> None:
    # The resident set is code, stack and private data, nothing else, because the filter refuses
    # shared memory and mapped files. So the data limit alone keeps the sum below `memory_mb`, as
    # long as no task uses what the warm-up did not; the address-space limit does so more coarsely
    # where there is no filter.
    used_bytes = limits.memory_mb * MIB - layers.code_bytes - _STACK_BYTES
    data_bytes = used_bytes + layers.untouched_bytes
    grown_bytes = max(0, data_bytes - layers.data_bytes)
    _lower_resource_limit(resource.RLIMIT_DATA, data_bytes)
    _lower_resource_limit(resource.RLIMIT_AS, layers.mapped_bytes + grown_bytes + _UNBACKED_BYTES)
    _lower_resource_limit(resource.RLIMIT_STACK, _STACK_BYTES)
    # A second fence behind the wall clock, which the caller keeps.
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
        """The fields that the package does not know yet; older kernels want them 0."""

        _fields_ = (("handled_access_net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))

    denied = Attributes(
        FSAccess.all(), 0b11 if abi >= _NET_ABI else 0, 0b11 if abi >= _SCOPE_ABI else 0
    )
    ctypes.set_errno(0)  # The package takes a stale errno for a failure.
    rules = get_create_ruleset()(ctypes.byref(denied), ctypes.sizeof(denied), 0)
    get_restrict_self()(rules, 0)
    os.close(rules)
    _expect_denial("landlock", errno.EACCES, lambda: os.close(os.open("/", os.O_RDONLY)))


def _open_test_socket() -> None:
    socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).close()


def _expect_denial(layer: str, code: int, attempt: Callable[[], None]) -> None:
    try:
        attempt()
    except OSError as error:
        if error.errno == code:
            return
        msg = f"{layer} answered an attempt with {error}"
        raise ConfinementError(msg) from error
    msg = f"{layer} let an attempt pass"
    raise ConfinementError(msg)


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


def _find_syscall_filter() -> Any | None:
    try:
        import pyseccomp
    except (ImportError, RuntimeError):  # The second where libseccomp itself is missing.
        return None
    return build_sandbox_syscall_filter(pyseccomp) if "Seccomp" in _read_status_fields() else None


def _call_prctl(libc: ctypes.CDLL, option: int, value: int) -> None:
    if libc.prctl(option, ctypes.c_ulong(value), *[ctypes.c_ulong(0)] * 3) != 0:
        msg = f"prctl {option} failed: {os.strerror(ctypes.get_errno())}"
        raise ConfinementError(msg)


def _read_status_fields() -> dict[str, str]:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _read_status_kilobytes() -> dict[str, int]:
    return {
        name: int(value.split()[0])
        for name, value in _read_status_fields().items()
        if value.endswith(" kB")
    }
