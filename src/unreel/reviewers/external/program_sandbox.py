"""Sandbox of a detector program: bubblewrap, a seccomp filter, and limits on time, memory, threads and output."""

import contextlib
import errno
import logging
import os
import selectors
import shutil
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from unreel.core.errors import InvalidSettingError, MachineError
from unreel.core.failure import Failure, FailureReason
from unreel.core.safe_text import sanitise_line

logger = logging.getLogger(__name__)

CLIP_FOLDER = Path("/clip")
SCRATCH = "/tmp"  # noqa: S108  a folder of the program's own, in memory
_MEMORY_BYTES = 16 << 30
"""Maximum memory of a program; at most half of the machine's memory."""
_OUTPUT_BYTES = 1 << 20
"""Maximum size of a program's output; a score takes one line."""
_FILE_BYTES = 1 << 30
_SHARED_BYTES = 1 << 29
_N_THREADS = 512
_POLL_S = 0.1
_SIGNALLED = 128
_SYSTEM = tuple(map(Path, ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/sbin")))
_SHARED_FOLDERS = tuple(map(Path, ("/tmp", "/var/tmp", "/dev/shm")))  # noqa: S108  compared
_MACHINE_FOLDERS = tuple(map(Path, ("/dev", "/etc", "/proc", "/run", "/sys")))

_REFUSED = """
    socket connect bind listen accept accept4 sendmsg sendmmsg
    shmget shmat semget msgget msgsnd mq_open ptrace process_vm_readv process_vm_writev kcmp
    chmod fchmod fchmodat chown fchown lchown fchownat utime utimes utimensat futimesat
    setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr
    mount umount2 pivot_root chroot setns unshare open_by_handle_at bpf perf_event_open
    userfaultfd keyctl add_key request_key acct kexec_load kexec_file_load init_module
    finit_module delete_module reboot swapon swapoff quotactl settimeofday clock_settime
    clock_adjtime adjtimex sethostname setdomainname iopl ioperm syslog vhangup personality
    modify_ldt
"""
# By number, because libseccomp may be too old for their names: io_uring_setup to io_uring_register;
# open_tree to fspick; pidfd_getfd, process_madvise, mount_setattr, quotactl_fd, memfd_secret,
# process_mrelease, fchmodat2, lsm_set_self_attr, setxattrat, removexattrat, open_tree_attr, file_setattr.
_REFUSED_NUMBERS = (*range(425, 434), *(438, 440, 442, 443, 447, 448, 452, 461, 463, 466, 467, 469))
_UNKNOWN_NUMBERS = (435, *range(470, 1024))
"""`clone3`, instead of which the C library calls `clone`, and calls that are newer than this list."""
_NAMESPACE_FLAGS = (0x20000, *(1 << bit for bit in range(25, 31)))
_IOCTLS = (
    *(0x40086602, 0x40046602, 0x401C5820),  # FS_IOC_SETFLAGS, FS_IOC32_SETFLAGS, FS_IOC_FSSETXATTR
    *(0x40087602, 0x40047602, 0x40806685),  # FS_IOC(32)_SETVERSION, FS_IOC_ENABLE_VERITY
    *(0x800C6613, 0xC0506617),  # encryption policy and key
    *(0xC0045877, 0xC0045878, 0x5412, 0x541C),  # FIFREEZE, FITHAW, TIOCSTI, TIOCLINUX
)


@cache
def find_program_sandbox_problem() -> tuple[str, str]:
    """Return why this machine cannot run programs in bubblewrap, and the remedy; "" and "" if it can."""
    if shutil.which("bwrap") is None:
        problem = "bubblewrap, which confines programs, is not installed"
        return problem, "Install it with `apt-get install bubblewrap`"
    command = [*build_bubblewrap_command(()), "--", "true"]
    try:
        done = subprocess.run(  # noqa: S603  our own options
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=20.0, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        last = type(error).__name__
    else:
        if done.returncode == 0:
            return "", ""
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    remedy = "Install bubblewrap 0.7 or later and allow user namespaces"
    return f"bubblewrap does not work here ({last})", remedy


def find_program_readable_paths(command: Sequence[str]) -> tuple[Path, ...]:
    """Return the paths, besides system folders, that the program of `command` must read.

    These are its interpreter, its own folder and the files among its arguments. Its own folder is
    the folder of the program or, if an interpreter runs it, of the first file argument. Raise
    `MachineError` if this machine cannot sandbox programs, or `InvalidSettingError` if its own
    folder is a home, temporary or system folder.
    """
    problem, remedy = find_program_sandbox_problem()
    if problem:
        raise MachineError(problem, remedy)
    program = shutil.which(command[0])
    if program is None:
        return ()
    first = Path(program).absolute()
    readable = list[Path]()
    for path in _list_interpreters(first):
        if not _is_system_path(path):
            readable += _list_python_folders(path) or [path]
    files = [Path(word) for word in command[1:] if word.startswith("/") and Path(word).is_file()]
    if "/" in command[0] and not _list_python_folders(first) and not _is_system_path(first):
        files.insert(0, first)
    if files and not _is_system_path(files[0]):
        folder, home = files[0].parent, Path.home().resolve()
        real = folder.resolve()
        if (
            real in (home, *home.parents, *_SHARED_FOLDERS)
            or any(real.is_relative_to(machine) for machine in _MACHINE_FOLDERS)
            or (real / ".ssh").exists()
        ):
            raise InvalidSettingError(
                "command",
                f"the program could read all of {str(folder)!a}",
                f"Move {files[0].name!a} to a folder of its own",
            )
        readable.append(folder)
    readable += [file for file in files[1:] if not _is_system_path(file)]
    return tuple(dict.fromkeys(readable))


def _list_interpreters(program: Path) -> list[Path]:
    """Return a program, the targets of its symbolic links, and the interpreter of a script."""
    pending, paths = [program], list[Path]()
    while pending:
        path = Path(os.path.abspath(pending.pop()))  # noqa: PTH100  links are followed one by one
        if path in paths or not path.exists():
            continue
        paths.append(path)
        if path.is_symlink():
            pending.append(path.parent / path.readlink())
        else:
            with path.open("rb") as file:
                line = file.read(256).partition(b"\n")[0]
            words = [word for word in os.fsdecode(line[2:]).split() if not word.startswith("-")]
            if line.startswith(b"#!") and len(words) > 1 and words[0].endswith("/env"):
                pending.append(Path(shutil.which(words[1]) or words[1]))
            elif line.startswith(b"#!") and words:
                pending.append(Path(words[0]))
        settings = path.parent.parent / "pyvenv.cfg"
        if settings.is_file():
            text = settings.read_text(encoding="utf-8", errors="replace")
            pairs = dict(line.split(" = ", 1) for line in text.splitlines() if " = " in line)
            pending.append(Path(pairs.get("home", path.parent)) / path.name)
    return paths


def _list_python_folders(program: Path) -> list[Path]:
    """Return the library folders of a Python interpreter or script; empty for another program."""
    prefix = program.parent.parent
    if (prefix / "pyvenv.cfg").is_file() or any((prefix / "lib").glob("python3*")):
        parts = (program.parent, prefix / "pyvenv.cfg", prefix / "lib", prefix / "lib64")
        return [path for path in parts if path.exists()]
    return []


def _is_system_path(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _SYSTEM)


def build_bubblewrap_command(
    readable: Sequence[Path], *, clip: Path | None = None, graphics: bool = False
) -> list[str]:
    """Return the command up to the program, which may read system folders, `clip` and `readable`."""
    command = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--unshare-user"]
    command += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    for path in _SYSTEM:
        if path.is_symlink():
            command += ["--symlink", str(path.readlink()), str(path)]
        elif path.exists():
            command += ["--ro-bind", str(path), str(path)]
    for name in ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"):
        command += ["--ro-bind-try", name, name]
    # The kernel lets root write to settings in /proc without any capability.
    command += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
    command += ["--size", str(_SHARED_BYTES), "--tmpfs", "/dev/shm"]  # noqa: S108  its own
    command += ["--size", str(_FILE_BYTES), "--tmpfs", SCRATCH]
    if graphics:
        devices = [*Path("/dev").glob("nvidia*"), Path("/dev/dri"), Path("/dev/kfd")]
        for device in map(str, devices):
            command += ["--dev-bind-try", device, device]
        command += ["--ro-bind", "/sys", "/sys"]
    for path in sorted({*readable}):
        command += ["--ro-bind", str(path), str(path)]
    if clip is not None:
        command += ["--ro-bind", str(clip), str(CLIP_FOLDER / clip.name)]
    return [*command, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", SCRATCH]


def build_sandboxed_command(
    bubblewrap: Sequence[str], command: Sequence[str], *, rules: int, report: int, memory: int
) -> list[str]:
    """Return the command that runs `command` in bubblewrap with resource limits and a seccomp filter.

    The started process must inherit the descriptors `rules` of the seccomp filter and `report` for
    bubblewrap's status. `memory` is the maximum size in bytes of a process's data.
    """
    prlimit = shutil.which("prlimit") or "prlimit"
    limits = [prlimit, f"--data={memory}", f"--fsize={_FILE_BYTES}", "--core=0", "--"]
    options = ["--seccomp", str(rules), "--json-status-fd", str(report), "--"]
    return [*bubblewrap, *options, *limits, *command]


def open_syscall_filter() -> int:
    """Return a descriptor of a file in memory with the seccomp filter as a BPF program, at its start.

    Bubblewrap separates files, processes, users and the network. The filter denies what a program
    could still use to reach the kernel or other programs of the machine.
    """
    from pyseccomp import ALLOW, EQ, ERRNO, MASKED_EQ, NE, Arg, Attr, SyscallFilter

    refuse, unknown = ERRNO(errno.EPERM), ERRNO(errno.ENOSYS)
    rules = SyscallFilter(ALLOW)
    rules.set_attr(Attr.ACT_BADARCH, unknown)
    rules.set_attr(Attr.CTL_OPTIMIZE, 2)  # a binary tree: 10 comparisons a call instead of 700
    for call in (*_REFUSED.split(), *_REFUSED_NUMBERS):
        rules.add_rule(refuse, call)
    for call in _UNKNOWN_NUMBERS:
        rules.add_rule(unknown, call)
    for flag in _NAMESPACE_FLAGS:
        rules.add_rule(refuse, "clone", Arg(0, MASKED_EQ, flag, flag))
    for request in _IOCTLS:  # the kernel reads the request as a C integer
        rules.add_rule(refuse, "ioctl", Arg(1, MASKED_EQ, 0xFFFFFFFF, request))
    # A pair of stream sockets reaches nobody else; datagram sockets can send to any address.
    rules.add_rule(refuse, "socketpair", Arg(0, NE, 1))
    for kind in {*range(16)} - {1}:
        rules.add_rule(refuse, "socketpair", Arg(0, EQ, 1), Arg(1, MASKED_EQ, 0xF, kind))
    rules.add_rule(refuse, "sendto", Arg(4, NE, 0))  # only without an address, as `send` calls it
    descriptor = os.memfd_create("filter")
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        rules.export_bpf(file)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def run_sandboxed_program(
    bubblewrap: Sequence[str],
    command: Sequence[str],
    *,
    name: str,
    environment: Mapping[str, str],
    seconds: float,
    stop: threading.Event,
    memory_bytes: int = _MEMORY_BYTES,
) -> bytes | Failure:
    """Run a program and return its output; a failure if it ends with a status, or exceeds a limit.

    The end of its stderr goes to the log alone: it may contain data that the program read.
    """
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    memory = min(physical // 2, memory_bytes)
    shared_before = _read_kib_line(Path("/proc/meminfo"), "Shmem:") or 0
    output, errors = bytearray(), bytearray()
    next_look_s = time.monotonic()
    deadline_s = next_look_s + seconds
    with contextlib.ExitStack() as stack:
        rules = open_syscall_filter()
        stack.callback(os.close, rules)
        report, report_end = os.pipe()
        stack.callback(os.close, report)
        with os.fdopen(report_end, "wb"):
            process = subprocess.Popen(  # noqa: S603  the recipe's own program
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
            )
        stack.enter_context(process)
        selector = stack.enter_context(selectors.DefaultSelector())
        assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018  pipes
        selector.register(process.stdout, selectors.EVENT_READ, output)
        selector.register(process.stderr, selectors.EVENT_READ, errors)
        while selector.get_map() or process.poll() is None:
            for key, _ in selector.select(_POLL_S):
                data = os.read(key.fd, 1 << 16)
                key.data.extend(data)
                if not data:
                    selector.unregister(key.fileobj)
            del errors[:-4096]  # its end, for the log
            failure = None
            if len(output) > _OUTPUT_BYTES:
                detail = f"the program wrote more than {_OUTPUT_BYTES} bytes"
                failure = Failure(FailureReason.REPLY_TOO_LARGE, detail)
            elif time.monotonic() >= next_look_s:  # not after each piece of output
                next_look_s = time.monotonic() + _POLL_S
                if _exceeds_limits(process.pid, memory, shared_before):
                    detail = (
                        f"the program took more than {memory >> 20} MiB or {_N_THREADS} threads"
                    )
                    failure = Failure(FailureReason.OUT_OF_MEMORY, detail)
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
        was_started = b"exit-code" in os.read(report, 1 << 16)
    status = process.returncode if process.returncode >= 0 else 128 - process.returncode
    if status == 0:
        return bytes(output)
    last = sanitise_line(errors.decode(errors="replace").strip().rpartition("\n")[2])
    logger.warning("%s: status %d: %s", name, status, last[:400])
    if not was_started or errors.startswith(b"prlimit: "):
        detail = f"{command[0]!a} cannot be run in its sandbox: {last[:200]}"
        return Failure(FailureReason.REQUEST_REJECTED, detail)
    if status > _SIGNALLED:
        detail = f"the program died of signal {status - _SIGNALLED}"
        return Failure(FailureReason.WORKER_DIED, detail)
    return Failure(FailureReason.SERVER_ERROR, f"the program ended with status {status}")


def _exceeds_limits(pid: int, memory: int, shared_before: int) -> bool:
    """Return whether a program's processes together exceed `memory` or the number of threads.

    Memory that no process has mapped, such as that of a memfd, counts by the growth of the machine's
    shared memory. Resident sizes count shared pages several times, so the slower exact measure decides.
    """
    if (_read_kib_line(Path("/proc/meminfo"), "Shmem:") or 0) - shared_before > memory:
        return True
    n_threads, resident = 0, dict[Path, int]()
    pending = [pid]
    while pending:
        process = Path(f"/proc/{pending.pop()}")
        for children in process.glob("task/*/children"):
            with contextlib.suppress(OSError):
                pending += map(int, children.read_text(encoding="ascii").split())
        with contextlib.suppress(OSError):
            stat = (process / "stat").read_text(encoding="latin-1").rpartition(")")[2].split()
            n_threads += int(stat[17])
            resident[process] = int(stat[21]) * os.sysconf("SC_PAGE_SIZE")
    if n_threads > _N_THREADS:
        return True
    if sum(resident.values()) <= memory:
        return False
    exact = 0
    for process, n_bytes in resident.items():
        measured = _read_kib_line(process / "smaps_rollup", "Pss:")
        exact += n_bytes if measured is None else measured
    return exact > memory


def _read_kib_line(file: Path, name: str) -> int | None:
    """Return in bytes what the line `name` of a file of /proc gives in KiB; `None` if it is missing."""
    with contextlib.suppress(OSError):
        for line in file.read_text(encoding="ascii").splitlines():
            if line.startswith(name):
                return int(line.split()[1]) << 10
    return None
