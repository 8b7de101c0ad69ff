"""Run one external program without privileges; this script is the parent process of the program.

With bubblewrap, the program gets its own file system from bubblewrap, and its limits and the
seccomp filter from this process. Weak confinement works without bubblewrap: the program can
read all files that its user can read and write to one directory. It has no network, no
capabilities and no means to gain privileges, and it sees no other process if the kernel can
hide them. A `ManagedProcess` starts this script, and ends the program with all its child
processes.
"""

import contextlib
import ctypes
import errno
import json
import os
import resource
import signal
import stat
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final, NoReturn

NOT_CONFINED: Final = 118
"""Exit status if the sandbox could not be set up: the program was not started."""
NOT_STARTED: Final = 119
"""Exit status if the program cannot be executed."""
_NEW_IPC: Final = 0x08000000
_NEW_USER: Final = 0x10000000
_NEW_PROCESSES: Final = 0x20000000
_NEW_NETWORK: Final = 0x40000000
_PATH_BENEATH: Final = 1
_NET_ABI: Final = 4
_SCOPE_ABI: Final = 6
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_SECCOMP: Final = 22
_FILTER_MODE: Final = 2
_MOST_PROCESSES: Final = 512
_MOST_FILE_BYTES: Final = 1 << 30
_REPORT_BYTES: Final = 1 << 16
_DEVICES: Final = ("null", "zero", "full", "random", "urandom")
_GRAPHICS: Final = ("nvidia*", "dri", "kfd")


class _SeccompProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def _load_module_file(file: Path) -> Any:
    """Load a module from its file, because importing its package would take much longer."""
    spec = spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        msg = f"{file} cannot be loaded"
        raise ImportError(msg)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(plan_json: str, command: list[str]) -> int:
    """Run `command` in the sandbox of `plan_json`; return its status, 128 plus the signal that ended it."""
    plan = json.loads(plan_json)
    try:
        _close_extra_descriptors()
        watchdog = _load_module_file(Path(__file__).with_name("watchdog.py"))
        memory = _compute_memory_limit(plan)
        if not plan["bubblewrap"]:
            pid = _start_weak_sandbox(plan, command)
            return int(watchdog.watch(pid, memory_bytes=memory, n_threads=_MOST_PROCESSES))
        report, pid = _start_bubblewrap(plan, command)
        status = int(watchdog.watch(pid, memory_bytes=memory, n_threads=_MOST_PROCESSES))
    except (OSError, ImportError, RuntimeError) as error:
        _write_confinement_error(error)
        return NOT_CONFINED
    # bubblewrap reports the exit status of a program only if it was started.
    has_ended = b"exit-code" in os.read(report, _REPORT_BYTES)
    return status if has_ended or status == watchdog.OVER_LIMIT else NOT_CONFINED


def _close_extra_descriptors() -> None:
    """Close all descriptors except the standard streams, which may be no sockets or folders."""
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    for stream in range(3):
        mode = os.fstat(stream).st_mode
        if stat.S_ISSOCK(mode) or stat.S_ISDIR(mode):
            msg = f"descriptor {stream} is a socket or a folder"
            raise RuntimeError(msg)


def _start_bubblewrap(plan: dict[str, Any], command: list[str]) -> tuple[int, int]:
    """Start bubblewrap; return the descriptor of its status report, and its process id."""
    report, report_end = os.pipe()
    rules = os.memfd_create("filter")
    os.write(rules, bytes.fromhex(plan["filter"]))
    os.lseek(rules, 0, os.SEEK_SET)
    keeper = os.getpid()
    pid = os.fork()
    if pid:
        os.close(report_end)
        return report, pid
    try:
        _die_with_parent(ctypes.CDLL(None, use_errno=True), keeper)
        _set_resource_limits(plan)
        for descriptor in (report_end, rules):
            os.set_inheritable(descriptor, True)  # noqa: FBT003
        options = ["--seccomp", str(rules), "--json-status-fd", str(report_end), "--"]
        os.execv(plan["bubblewrap"][0], [*plan["bubblewrap"], *options, *command])  # noqa: S606
    except OSError as error:
        _write_confinement_error(error)
    os._exit(NOT_CONFINED)


def _start_weak_sandbox(plan: dict[str, Any], command: list[str]) -> int:
    """Start the program in the weak sandbox; return the id of the program's parent process."""
    libc = ctypes.CDLL(None, use_errno=True)
    _unshare_namespaces(libc)
    keeper = os.getpid()
    first = os.fork()
    if first:
        return first
    # The first process of its namespace: when it exits, the kernel kills all others in it.
    with contextlib.suppress(OSError):
        _limit_process_ids()
    _die_with_parent(libc, keeper)
    second = os.fork()
    if not second:
        _exec_confined_command(libc, plan, command)
    os._exit(_wait_for_exit(second))


def _exec_confined_command(libc: ctypes.CDLL, plan: dict[str, Any], command: list[str]) -> NoReturn:
    try:
        os.setsid()
        _set_resource_limits(plan)
        _lower_resource_limit(resource.RLIMIT_NPROC, _count_user_threads() + _MOST_PROCESSES)
        _drop_capabilities(libc)
        _restrict_file_access(Path(plan["folder"]), graphics=plan["graphics"])
        _install_syscall_filter(libc, bytes.fromhex(plan["filter"]))
    except (OSError, ImportError, RuntimeError) as error:
        _write_confinement_error(error)
        os._exit(NOT_CONFINED)
    try:
        os.chdir(plan["folder"])
        os.execvp(command[0], command)  # noqa: S606  the recipe's own program
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode(errors="replace"))
        os._exit(NOT_STARTED)


def _write_confinement_error(error: Exception) -> None:
    os.write(2, f"the cage is not effective: {error}\n".encode(errors="replace"))


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Drop all capabilities, as the sandbox does; raise `OSError` if any remain."""
    file = Path(__file__).parents[2] / "media" / "sandbox" / "capabilities.py"
    loaded = _load_module_file(file)
    loaded.drop_capabilities(libc)
    if loaded.has_capabilities(libc):
        msg = "capabilities were given up and are there"
        raise OSError(msg)


def _unshare_namespaces(libc: ctypes.CDLL) -> None:
    """Create own process, network and IPC namespaces if possible; later limits do not need them."""
    apart = _NEW_PROCESSES | _NEW_NETWORK | _NEW_IPC
    if libc.unshare(apart) == 0:
        return
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(apart | _NEW_USER) == 0:
        with contextlib.suppress(OSError):
            _write_kernel_file("/proc/self/setgroups", "deny")
            _write_kernel_file("/proc/self/uid_map", f"{uid} {uid} 1")
            _write_kernel_file("/proc/self/gid_map", f"{gid} {gid} 1")


def _limit_process_ids() -> None:
    """Limit processes by the namespace's highest process id, its own since Linux 6.14."""
    if os.getpid() == 1:
        _write_kernel_file("/proc/sys/kernel/pid_max", str(_MOST_PROCESSES))


def _set_resource_limits(plan: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        _write_kernel_file("/proc/self/oom_score_adj", "1000")
    for kind, value in (
        (resource.RLIMIT_DATA, _compute_memory_limit(plan)),
        (resource.RLIMIT_FSIZE, _MOST_FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        _lower_resource_limit(kind, value)


def _lower_resource_limit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (allowed, allowed))


def _compute_memory_limit(plan: dict[str, Any]) -> int:
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(physical // 2, int(plan["memory_mb"]) << 20)


def _count_user_threads() -> int:
    n_threads = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if process.stat().st_uid == os.getuid():
                n_threads += len(list((process / "task").iterdir()))
    return n_threads


def _restrict_file_access(folder: Path, *, graphics: bool) -> None:
    """Restrict writing by Landlock to `folder`, devices like `/dev/null` and, if `graphics`, those."""
    from landlock import FSAccess
    from landlock.plumbing import (
        PathBeneathAttr,
        RulesetAttr,
        get_add_rule,
        get_create_ruleset,
        get_restrict_self,
        landlock_abi_version,
    )

    class Attributes(RulesetAttr):  # type: ignore[misc]  # the package is not typed
        _fields_ = (("handled_access_net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))

    ctypes.set_errno(0)  # The package interprets a stale errno as a failure.
    abi = int(landlock_abi_version())
    handled = Attributes(
        FSAccess.all(), 0b11 if abi >= _NET_ABI else 0, 0b11 if abi >= _SCOPE_ABI else 0
    )
    rules = get_create_ruleset()(ctypes.byref(handled), ctypes.sizeof(handled), 0)
    reading = FSAccess.EXECUTE | FSAccess.READ_FILE | FSAccess.READ_DIR
    device = FSAccess.all_file() & ~FSAccess.EXECUTE
    granted = [(Path("/"), reading), (folder, FSAccess.all())]
    granted += [(path, device) for path in _list_device_paths(graphics=graphics)]
    for path, rights in granted:
        allowed = rights if path.is_dir() else rights & FSAccess.all_file()
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = PathBeneathAttr(allowed, opened)
        get_add_rule()(rules, _PATH_BENEATH, ctypes.byref(rule), 0)
        os.close(opened)
    get_restrict_self()(rules, 0)
    os.close(rules)
    try:
        os.close(os.open(folder.parent / "outside", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    except PermissionError:
        return
    msg = "Landlock let a file be made outside"
    raise RuntimeError(msg)


def _list_device_paths(*, graphics: bool) -> list[Path]:
    names = (*_DEVICES, *_GRAPHICS) if graphics else _DEVICES
    return [path for name in names for path in Path("/dev").glob(name)]


def _install_syscall_filter(libc: ctypes.CDLL, rules: bytes) -> None:
    program = _SeccompProgram(len(rules) // 8, rules)
    if libc.prctl(_PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp takes no filter")
    if libc.socket(2, 1, 0) != -1 or ctypes.get_errno() != errno.EPERM:
        msg = "it let an attempt pass"
        raise RuntimeError(msg)


def _die_with_parent(libc: ctypes.CDLL, keeper: int) -> None:
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # In a separate PID namespace the parent's id is always 0.
    if os.getppid() not in {0, keeper}:
        os._exit(NOT_STARTED)


def _wait_for_exit(pid: int) -> int:
    """Wait for the process `pid` and return its exit status; reap other children meanwhile."""
    while True:
        ended, status = os.wait()
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _write_kernel_file(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
