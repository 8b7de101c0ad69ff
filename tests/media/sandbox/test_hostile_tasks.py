"""A decoder that a file has taken over: whatever it does, the caller gets a failure and goes on."""

import errno
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyseccomp
import pytest

from pace import slowness
from stalls import Stalls
from unreel.core.failure import Failure, FailureReason
from unreel.media.messages import TaskReplyPayload
from unreel.media.sandbox import LAYERS, FileSandbox, SandboxLimits

REACHING_OUT = [
    "read-passwd", "stat-passwd", "list-root", "read-proc", "unix-socket", "fork", "fork-bomb",
    "execve", "spawn", "kill-parent", "memfd", "executable-memory", "raise-limit",
]  # fmt: skip

EXPECTED = {
    "allocate-2-gb": FailureReason.OUT_OF_MEMORY,
    "allocate-2-gb-in-small-pieces": FailureReason.OUT_OF_MEMORY,
    "share-2-gb": FailureReason.WORKER_DIED,
    "loop": FailureReason.OUT_OF_TIME,
    "loop-in-c": FailureReason.OUT_OF_TIME,
    "sleep": FailureReason.OUT_OF_TIME,
    "raise-memory-error": FailureReason.OUT_OF_MEMORY,
    "raise-media-error": FailureReason.NO_VIDEO,
    "raise-wrapped-memory-error": FailureReason.OUT_OF_MEMORY,
    "announce-10-gb-of-blobs": FailureReason.OUT_OF_MEMORY,
    "return-400-mb": FailureReason.OUT_OF_MEMORY,
    "say-half-and-sleep": FailureReason.OUT_OF_TIME,
    "say-escapes": FailureReason.NO_VIDEO,
} | dict.fromkeys(
    [
        "exit-0", "exit-3", "kill-itself", "segfault", "abort", "raise-runtime-error",
        "raise-unprintable", "raise-keyboard-interrupt", "raise-system-exit",
        "say-nothing-and-close", "say-garbage", "say-10-gb", "say-half-a-prefix",
        "say-half-a-header", "say-half-a-blob", "say-no-json", "say-no-utf-8", "say-nan",
        "say-half-a-surrogate", "say-a-huge-number", "say-deep-json", "say-a-list", "say-no-header",
        "say-negative-blob", "say-text-blob", "say-a-million-blobs", "say-unknown-reason",
        "say-no-detail", "say-pickle", "return-no-payload", "announce-4-gb-of-header",
    ],
    FailureReason.WORKER_DIED,
)  # fmt: skip

DENIED_CALLS = [
    "accept", "add_key", "bind", "bpf", "capget", "capset", "chdir", "clone", "chmod", "chown", "chroot", "connect", "creat",
    "dup", "dup2", "dup3", "epoll_create1", "execve", "execveat", "fanotify_init", "fchmod",
    "fcntl", "finit_module", "flock", "fork", "ftruncate", "getdents64", "init_module",
    "inotify_init1", "io_setup", "io_uring_setup", "ioctl", "kcmp", "keyctl", "kill", "link",
    "linkat", "listen", "memfd_create", "mkdir", "mknod", "mount", "move_pages", "name_to_handle_at",
    "newfstatat", "open", "open_by_handle_at", "open_tree", "openat", "openat2",
    "perf_event_open", "personality", "pidfd_getfd", "pidfd_open", "pidfd_send_signal", "pipe",
    "pipe2", "pivot_root", "pkey_mprotect", "prctl", "prlimit64", "process_vm_readv",
    "process_vm_writev", "ptrace", "quotactl", "recvmsg", "rename", "request_key", "rt_sigqueueinfo",
    "sched_setaffinity", "seccomp", "sendmsg", "sendto", "setns", "setpgid", "setrlimit", "setsid",
    "setuid", "shmget", "signalfd4", "socket", "socketpair", "stat", "statx", "swapon", "symlink",
    "sysinfo", "syslog", "tgkill", "timerfd_create", "tkill", "truncate", "umount2", "uname",
    "unlink", "unlinkat", "unshare", "userfaultfd", "utimensat", "vfork", "vmsplice",
]  # fmt: skip


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A loopback TCP port, with a UDP socket on the same number left to the caller."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        yield server


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """A process that must survive."""
    code = "import time; time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        yield process
        process.kill()


def test_every_layer_that_the_kernel_has_is_active(
    hostile: FileSandbox, tell: Callable[[str], None]
) -> None:
    active = hostile.protection()
    tell(f"layers: {', '.join(sorted(active))}")
    wanted = {"no-new-privileges", "no-capabilities", "undumpable", "rlimits"}
    if _kernel_has_landlock():
        wanted.add("landlock")
    if "Seccomp:" in Path("/proc/self/status").read_text(encoding="ascii"):
        wanted.add("seccomp")
    assert active == wanted
    assert wanted <= set(LAYERS)


def _kernel_has_landlock() -> bool:
    from landlock import LandlockError, landlock_abi_version

    try:
        return bool(landlock_abi_version() > 0)
    except LandlockError:
        return False


def test_a_well_behaved_task_reads_a_nameless_file_and_answers(
    hostile: FileSandbox, clip: Path
) -> None:
    result = hostile("echo", clip, {"a": [1, "b"]})
    assert result == TaskReplyPayload({"asked": {"a": [1, "b"]}, "named": False}, (b"head", b"ail"))


def test_none_of_10000_threads_starts(hostile: FileSandbox, clip: Path) -> None:
    numbers = {
        name: pyseccomp.resolve_syscall(pyseccomp.system_arch(), name)
        for name in ("clone", "clone3")
    }
    result = hostile.run("threads", clip, request=numbers, limits=SandboxLimits(seconds=30))[0]
    assert result == TaskReplyPayload(
        {"got": {"by_library": 0, "codes": [errno.EPERM, errno.ENOSYS]}}
    )


def test_of_all_advice_about_memory_the_kernel_hears_how_to_give_it_back(
    hostile: FileSandbox, clip: Path
) -> None:
    dont_need, free = 4, 8
    assert hostile("advices", clip, {}) == TaskReplyPayload({"got": [dont_need, free]})


def test_neither_a_child_nor_its_zygote_has_a_capability(hostile: FileSandbox, clip: Path) -> None:
    hostile("echo", clip, {})
    assert hostile._zygote is not None
    zygote = hostile._zygote.pid
    with ThreadPoolExecutor(1) as pool:
        nap = pool.submit(hostile, "nap", clip, {"seconds": 1})
        while not (children := Path(f"/proc/{zygote}/task/{zygote}/children").read_text().split()):
            time.sleep(0.01)
        held = {pid: _capabilities(pid) for pid in (zygote, *children)}
        nap.result()
    for sets in held.values():
        assert sets["NoNewPrivs"] == "1"
        names = ["CapInh", "CapPrm", "CapEff", "CapAmb"]
        # Only root can empty its bounding set, and only root needs to.
        names += ["CapBnd"] if os.geteuid() == 0 else []
        assert {int(sets[name], 16) for name in names} == {0}


def _capabilities(pid: int | str) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return {name: rest.strip() for name, _, rest in (line.partition(":") for line in lines)}


@pytest.mark.parametrize("task", REACHING_OUT)
def test_reaching_out_is_denied(hostile: FileSandbox, clip: Path, task: str) -> None:
    result = hostile(task, clip, {})
    assert isinstance(result, Failure)
    assert result.reason is FailureReason.WORKER_DIED
    assert "not permitted" in result.detail or "not allowed" in result.detail
    assert isinstance(hostile("echo", clip, {}), TaskReplyPayload)


@pytest.mark.parametrize("task", ["connect", "send-datagram"])
def test_no_packet_leaves_the_child(
    hostile: FileSandbox, clip: Path, listener: socket.socket, task: str
) -> None:
    port = listener.getsockname()[1]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(("127.0.0.1", port))
        datagrams.settimeout(0.2)
        result = hostile(task, clip, {"port": port})
        assert isinstance(result, Failure)
        assert "Operation not permitted" in result.detail
        with pytest.raises(TimeoutError):
            listener.accept()
        with pytest.raises(TimeoutError):
            datagrams.recv(16)


def test_a_child_cannot_kill_another_process(
    hostile: FileSandbox, clip: Path, victim: subprocess.Popen[bytes]
) -> None:
    result = hostile("kill-victim", clip, {"pid": victim.pid})
    assert isinstance(result, Failure)
    assert victim.poll() is None


def test_a_child_can_neither_write_nor_delete_a_file(
    hostile: FileSandbox, clip: Path, tmp_path: Path
) -> None:
    fresh = tmp_path / "fresh"
    assert isinstance(hostile("write-file", clip, {"path": str(fresh)}), Failure)
    assert isinstance(hostile("unlink", clip, {"path": str(clip)}), Failure)
    assert not fresh.exists()
    assert clip.exists()


def test_the_kernel_refuses_every_call_that_decoding_does_not_need(
    hostile: FileSandbox, clip: Path
) -> None:
    numbers = {}
    for name in DENIED_CALLS:
        number = pyseccomp.resolve_syscall(pyseccomp.system_arch(), name)
        if number >= 0:  # Some names exist on other processors only.
            numbers[name] = number
    assert len(numbers) > 60
    result = hostile("syscalls", clip, {"numbers": numbers})
    assert isinstance(result, TaskReplyPayload)
    assert {name: code for name, code in result.header["got"].items() if code != 1} == {}


@pytest.mark.parametrize(
    "task",
    [
        # On a busy machine the time may end before the memory does.
        pytest.param(t, marks=pytest.mark.alone)
        if EXPECTED[t] is FailureReason.OUT_OF_MEMORY
        else t
        for t in sorted(EXPECTED)
    ],
)
def test_abuse_ends_in_a_failure_with_its_reason(
    hostile: FileSandbox, clip: Path, task: str, stalls: Stalls
) -> None:
    started = time.monotonic()
    result, peak_mb = hostile.run(task, clip, request={})
    taken = time.monotonic() - started
    assert isinstance(result, Failure), result
    assert result.reason is EXPECTED[task]
    assert taken < hostile.limits.seconds + slowness() + stalls.seconds()
    assert peak_mb is not None
    assert peak_mb < hostile.limits.memory_mb
    assert result.detail.isprintable()
    assert len(result.detail) <= 300
    assert isinstance(hostile("echo", clip, {}), TaskReplyPayload)


def test_a_call_may_have_limits_of_its_own(
    hostile: FileSandbox, clip: Path, stalls: Stalls
) -> None:
    started = time.monotonic()
    hurried = hostile.run("sleep", clip, request={}, limits=SandboxLimits(seconds=0.3))[0]
    assert isinstance(hurried, Failure)
    assert hurried.reason is FailureReason.OUT_OF_TIME
    assert time.monotonic() - started < 2 * slowness() + stalls.seconds()
    generous = SandboxLimits(memory_mb=1024, reply_bytes=400 * 1024**2, seconds=15)
    large = hostile.run("return-400-mb", clip, request={}, limits=generous)[0]
    assert isinstance(large, TaskReplyPayload)
    assert len(large.blobs[0]) == 300 * 1024**2
