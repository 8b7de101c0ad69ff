"""Runs one program without its rights: a process of its own that gives them up and then becomes the program.

The program may read what its user may read and write into one folder. It has no network, no other
process in sight where the kernel can hide them, no capabilities, and no way to get more. It is started
under a `core.leash.Leash`, which ends it with all that it started.
"""

import contextlib
import ctypes
import errno
import json
import os
import resource
import signal
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final, NoReturn

NOT_CONFINED: Final = 118
"""Exit status of a cage that does not hold: the program was not started."""
NOT_STARTED: Final = 119
"""Exit status where the program cannot be run at all."""
_NEW_IPC: Final = 0x08000000
_NEW_USER: Final = 0x10000000
_NEW_PROCESSES: Final = 0x20000000
_NEW_NETWORK: Final = 0x40000000
_NEW_OTHERS: Final = (0x00020000, 0x02000000, 0x04000000)
"""File systems, control groups, host names."""
_NAMESPACES: Final = (*_NEW_OTHERS, _NEW_IPC, _NEW_USER, _NEW_PROCESSES, _NEW_NETWORK)
_PATH_BENEATH: Final = 1
_NET_ABI: Final = 4
_SCOPE_ABI: Final = 6
_PR_SET_PDEATHSIG: Final = 1
_MOST_PROCESSES: Final = 512
_MOST_FILE_BYTES: Final = 1 << 30
_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "dri", "kfd")
_DENIED: Final = (
    # The network, and ways round that.
    *("socket", "io_uring_setup", "io_uring_enter", "io_uring_register"),
    # Other processes.
    *("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp"),
    # Rights and marks of files, which Landlock does not guard.
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr"),
    *("utime", "utimes", "utimensat", "futimesat"),
    # Another view of the machine, and the machine itself.
    *("mount", "umount2", "move_mount", "open_tree", "fsopen", "fsmount", "fsconfig", "fspick"),
    *("mount_setattr", "pivot_root", "chroot", "setns", "unshare", "open_by_handle_at"),
    *("bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key", "request_key", "acct"),
    *("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot"),
    *(
        "swapon",
        "swapoff",
        "quotactl",
        "settimeofday",
        "clock_settime",
        "clock_adjtime",
        "adjtimex",
    ),
    *("sethostname", "setdomainname", "iopl", "ioperm", "syslog", "vhangup", "personality"),
)


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """As the sandbox does, by its file: the package around it takes longer to load than all else here."""
    file = Path(__file__).parents[2] / "media" / "sandbox" / "capabilities.py"
    found = spec_from_file_location("capabilities", file)
    if found is None or found.loader is None:
        msg = f"{file} cannot be loaded"
        raise ImportError(msg)
    loaded = module_from_spec(found)
    found.loader.exec_module(loaded)
    loaded.drop_capabilities(libc)
    if loaded.has_capabilities(libc):
        msg = "capabilities were given up and are there"
        raise OSError(msg)


def main(plan: str, command: list[str]) -> int:
    """Run `command` as `plan` says; its exit status, 128 and more for a signal."""
    told = json.loads(plan)
    libc = ctypes.CDLL(None, use_errno=True)
    _leave_namespaces(libc)
    keeper = os.getpid()
    first = os.fork()
    if first:
        return _status_of(first)
    # The first process of its namespace: with its end the kernel ends all others there.
    with contextlib.suppress(OSError):
        _limit_ids()
    _die_with(libc, keeper)
    second = os.fork()
    if second:
        os._exit(_status_of(second))
    return _become(libc, told, command)


def _become(libc: ctypes.CDLL, told: dict[str, Any], command: list[str]) -> NoReturn:
    try:
        os.setsid()
        _limit(told)
        _drop_capabilities(libc)
        _guard_files(Path(told["folder"]))
        _guard_calls()
    except (OSError, ImportError, RuntimeError) as error:
        os.write(2, f"the cage does not hold: {error}\n".encode(errors="replace"))
        os._exit(NOT_CONFINED)
    try:
        os.chdir(told["folder"])
        os.execvp(command[0], command)  # noqa: S606  the recipe's own program
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode(errors="replace"))
        os._exit(NOT_STARTED)


def _leave_namespaces(libc: ctypes.CDLL) -> None:
    """Processes and network of its own, as far as the machine allows; what follows holds without them."""
    apart = _NEW_PROCESSES | _NEW_NETWORK | _NEW_IPC
    if libc.unshare(apart) == 0:
        return
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(apart | _NEW_USER) == 0:
        with contextlib.suppress(OSError):
            _tell("/proc/self/setgroups", "deny")
            _tell("/proc/self/uid_map", f"{uid} {uid} 1")
            _tell("/proc/self/gid_map", f"{gid} {gid} 1")


def _limit_ids() -> None:
    """Since Linux 6.14 the highest number of a process is one of its namespace: it bounds how many there are."""
    if os.getpid() == 1:
        _tell("/proc/sys/kernel/pid_max", str(_MOST_PROCESSES))


def _limit(told: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        _tell("/proc/self/oom_score_adj", "1000")
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for kind, value in (
        (resource.RLIMIT_DATA, min(physical // 2, int(told["memory_mb"]) << 20)),
        (resource.RLIMIT_FSIZE, _MOST_FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, _threads_of_user() + _MOST_PROCESSES),
    ):
        hard = resource.getrlimit(kind)[1]
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (allowed, allowed))


def _threads_of_user() -> int:
    n_threads = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if process.stat().st_uid == os.getuid():
                n_threads += len(list((process / "task").iterdir()))
    return n_threads


def _guard_files(folder: Path) -> None:
    """Everything may be read and run, as far as the user may; only `folder` and harmless devices be written."""
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

    ctypes.set_errno(0)  # The package takes a stale errno for a failure.
    abi = int(landlock_abi_version())
    handled = Attributes(
        FSAccess.all(), 0b11 if abi >= _NET_ABI else 0, 0b11 if abi >= _SCOPE_ABI else 0
    )
    rules = get_create_ruleset()(ctypes.byref(handled), ctypes.sizeof(handled), 0)
    reading = FSAccess.EXECUTE | FSAccess.READ_FILE | FSAccess.READ_DIR
    device = FSAccess.all_file() & ~FSAccess.EXECUTE
    granted = [(Path("/"), reading), (folder, FSAccess.all())]
    granted += [(path, device) for path in _devices()]
    for path, rights in granted:
        own = rights if path.is_dir() else rights & FSAccess.all_file()
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = PathBeneathAttr(own, opened)
        get_add_rule()(rules, _PATH_BENEATH, ctypes.byref(rule), 0)
        os.close(opened)
    get_restrict_self()(rules, 0)
    os.close(rules)
    _expect(errno.EACCES, (folder.parent / "outside").mkdir)


def _devices() -> list[Path]:
    named = [Path("/dev") / name for name in _DEVICES]
    return [path for path in (*named, *Path("/dev").glob("nvidia*")) if path.exists()]


def _guard_calls() -> None:
    import pyseccomp as seccomp

    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    refusal = seccomp.ERRNO(errno.EPERM)
    for name in _DENIED:
        if seccomp.resolve_syscall(seccomp.system_arch(), name) >= 0:
            rules.add_rule(refusal, name)
    for flag in _NAMESPACES:
        rules.add_rule(refusal, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, flag, flag))
    # "No such call" makes the C library use `clone`, whose flags can be looked at.
    rules.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")
    rules.load()
    _expect(errno.EPERM, _try_socket)


def _try_socket() -> None:
    import socket

    socket.socket(socket.AF_INET, socket.SOCK_STREAM).close()


def _expect(code: int, attempt: Any) -> None:
    try:
        attempt()
    except OSError as error:
        if error.errno == code:
            return
        raise
    msg = "it let an attempt pass"
    raise RuntimeError(msg)


def _die_with(libc: ctypes.CDLL, keeper: int) -> None:
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # In a namespace of its own, the parent is 0 whether it lives or not.
    if os.getppid() not in {0, keeper}:
        os._exit(NOT_STARTED)


def _status_of(pid: int) -> int:
    """Return the exit status of the process; orphans are reaped meanwhile."""
    while True:
        ended, status = os.wait()
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _tell(path: str, words: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, words.encode())
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
