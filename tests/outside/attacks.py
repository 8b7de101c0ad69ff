"""Attacks on the cage of `command:` programs: each is tried once, and the numbers of those that worked are printed.

It runs as the program itself, with the standard library alone. `sys.argv[1]` describes the yard outside as JSON.
"""

import array
import contextlib
import ctypes
import fcntl
import json
import mmap
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ATTACKS: list[Callable[[dict[str, Any]], object]] = []
LIBC = ctypes.CDLL(None, use_errno=True)
FROM_HERE = -100


def attack(function: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], object]:
    ATTACKS.append(function)
    return function


def call(number: int, *arguments: Any) -> int:
    """Make a system call by its number; raise as the standard library does."""
    LIBC.syscall.restype = ctypes.c_long
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = LIBC.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(result)


def in_child(work: Callable[[], object]) -> bool:
    """Whether `work` is true in a process of its own, which may die of it."""
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            os._exit(0 if work() else 1)
        os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def acl(mode: int) -> bytes:
    """A POSIX ACL for all, as `system.posix_acl_access` holds it."""
    entries = ((1, 6, -1), (4, mode, -1), (16, mode, -1), (32, mode, -1))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)


# Files of others.


@attack
def read_a_secret(yard: dict[str, Any]) -> object:
    return yard["mark"] in Path(yard["secret"]).read_text()


@attack
def list_a_folder(yard: dict[str, Any]) -> object:
    return [*Path(yard["folder"]).iterdir()]


@attack
def read_beside_the_program(_yard: dict[str, Any]) -> object:
    return (Path(__file__).parent.parent / "beside").read_text()


@attack
def read_passwords(_yard: dict[str, Any]) -> object:
    return Path("/etc/passwd").read_bytes()


@attack
def read_the_disk(_yard: dict[str, Any]) -> object:
    for disk in (d for name in ("vd?", "sd?", "nvme?n?", "mem") for d in Path("/dev").glob(name)):
        with contextlib.suppress(OSError), disk.open("rb") as opened:
            return opened.read(1)
    return False


@attack
def write_a_file(yard: dict[str, Any]) -> object:
    return Path(yard["open"]).open("a").write("attacked")


@attack
def create_a_file(yard: dict[str, Any]) -> object:
    return Path(yard["folder"], "created").write_text("attacked")


@attack
def link_a_secret(yard: dict[str, Any]) -> object:
    os.link(yard["secret"], "linked")
    return Path("linked").read_text()


@attack
def remove_a_file(yard: dict[str, Any]) -> object:
    Path(yard["removable"]).unlink()
    return True


@attack
def shorten_a_file(yard: dict[str, Any]) -> object:
    os.truncate(yard["open"], 0)
    return True


@attack
def change_a_mode(yard: dict[str, Any]) -> object:
    Path(yard["secret"]).chmod(0o666)
    return True


@attack
def change_a_mode_by_fchmodat2(yard: dict[str, Any]) -> object:
    return call(452, FROM_HERE, yard["secret"].encode(), 0o666, 0) == 0


@attack
def change_an_owner(yard: dict[str, Any]) -> object:
    os.chown(yard["secret"], os.getuid(), os.getgid())
    return True


@attack
def change_times(yard: dict[str, Any]) -> object:
    os.utime(yard["secret"], (1, 1))
    return True


@attack
def set_an_attribute(yard: dict[str, Any]) -> object:
    os.setxattr(yard["secret"], "user.attacked", b"1")
    return True


@attack
def set_an_acl_by_setxattrat(yard: dict[str, Any]) -> object:
    value = acl(6)
    held = ctypes.create_string_buffer(value, len(value))
    arguments = struct.pack("=QII", ctypes.addressof(held), len(value), 0)
    name = b"system.posix_acl_access"
    return call(463, FROM_HERE, yard["secret"].encode(), 0, name, arguments, 16) == 0


@attack
def remove_an_attribute_by_removexattrat(yard: dict[str, Any]) -> object:
    return call(466, FROM_HERE, yard["marked"].encode(), 0, b"user.kept") == 0


@attack
def set_flags_by_file_setattr(yard: dict[str, Any]) -> object:
    arguments = struct.pack("=QIIII", 0x80, 0, 0, 0, 0)  # FS_XFLAG_NODUMP
    return call(469, FROM_HERE, yard["secret"].encode(), arguments, 24, 0) == 0


def set_flags(path: str, command: int) -> bool:
    with Path(path).open("rb") as opened:
        flags = ctypes.c_long()
        LIBC.ioctl(opened.fileno(), ctypes.c_ulong(0x80086601), ctypes.byref(flags))
        flags.value |= 0x40  # FS_NODUMP_FL
        worked = LIBC.ioctl(opened.fileno(), ctypes.c_ulong(command), ctypes.byref(flags))
        return int(worked) == 0


@attack
def set_flags_by_ioctl(yard: dict[str, Any]) -> object:
    return set_flags(yard["secret"], 0x40086602)


@attack
def set_flags_by_an_ioctl_with_high_bits(yard: dict[str, Any]) -> object:
    return set_flags(yard["open"], 0x1_4008_6602)


@attack
def set_flags_of_the_program(_yard: dict[str, Any]) -> object:
    return set_flags(__file__, 0x40086602)


@attack
def set_flags_by_fssetxattr(yard: dict[str, Any]) -> object:
    with Path(yard["secret"]).open("rb") as opened:
        return fcntl.ioctl(opened, 0x401C5820, struct.pack("=IIIII8x", 0x80, 0, 0, 0, 0))


@attack
def change_the_clip(_yard: dict[str, Any]) -> object:
    return Path(sys.argv[-1]).open("ab").write(b"attacked")


@attack
def change_the_program(_yard: dict[str, Any]) -> object:
    return Path(__file__).open("a").write("\n# attacked\n")


@attack
def open_by_handle(yard: dict[str, Any]) -> object:
    handle = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0), 136)
    mount = ctypes.c_int()
    path = yard["folder"].encode()
    if LIBC.name_to_handle_at(FROM_HERE, path, handle, ctypes.byref(mount), 0):
        return False
    root = os.open("/", os.O_RDONLY)
    return LIBC.open_by_handle_at(root, handle, os.O_RDONLY) >= 0


@attack
def change_the_kernel(_yard: dict[str, Any]) -> object:
    # Opened and not written: the rights of root are enough, capabilities are not asked for.
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
    return True


@attack
def leave_by_proc(yard: dict[str, Any]) -> object:
    for process in ("1", str(os.getppid()), str(yard["victim"])):
        for way in ("root", "cwd"):
            with contextlib.suppress(OSError):
                if yard["mark"] in Path(f"/proc/{process}/{way}/{yard['secret']}").read_text():
                    return True
    return False


# The network and other processes' sockets.


@attack
def connect_by_tcp(yard: dict[str, Any]) -> object:
    return socket.create_connection(("127.0.0.1", yard["tcp"]), 5)


@attack
def send_by_udp(yard: dict[str, Any]) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        return own.sendto(b"udp", ("127.0.0.1", yard["udp"]))


@attack
def send_to_a_unix_socket(yard: dict[str, Any]) -> object:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
        return own.sendto(b"unix", yard["socket"])


@attack
def send_to_an_abstract_socket(yard: dict[str, Any]) -> object:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
        return own.sendto(b"abstract", "\0" + yard["abstract"])


@attack
def send_by_a_pair(yard: dict[str, Any]) -> object:
    own, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    return own.sendto(b"pair", yard["socket"])


@attack
def hand_out_a_descriptor(yard: dict[str, Any]) -> object:
    own, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with Path(sys.argv[-1]).open("rb") as opened:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [opened.fileno()]))]
        return own.sendmsg([b"rights"], rights, 0, yard["socket"])


@attack
def connect_a_pair_elsewhere(yard: dict[str, Any]) -> object:
    own, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    own.connect(yard["socket"])
    return own.send(b"connected")


@attack
def listen_for_others(_yard: dict[str, Any]) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as own:
        own.bind(("127.0.0.1", 0))
        own.listen()
        return own.getsockname()


@attack
def set_up_io_uring(_yard: dict[str, Any]) -> object:
    return call(425, 4, ctypes.create_string_buffer(120)) >= 0


@attack
def send_to_a_message_queue(yard: dict[str, Any]) -> object:
    queue = LIBC.msgget(yard["queue"], 0)
    return queue >= 0 and LIBC.msgsnd(queue, struct.pack("=q8s", 1, b"attacked"), 8, 0o4000) == 0


@attack
def use_keys_of_the_kernel(_yard: dict[str, Any]) -> object:
    return call(248, b"user", b"unreel-attack", b"x", 1, -1) > 0  # add_key to the thread's own ring


# Other processes.


@attack
def kill_a_process(yard: dict[str, Any]) -> object:
    os.kill(yard["victim"], signal.SIGUSR1)
    return True


@attack
def signal_by_a_pidfd(yard: dict[str, Any]) -> object:
    signal.pidfd_send_signal(os.pidfd_open(yard["victim"]), signal.SIGUSR1)
    return True


@attack
def trace_a_process(yard: dict[str, Any]) -> object:
    def trace() -> bool:
        worked = LIBC.ptrace(0x4206, yard["victim"], 0, 0) == 0  # PTRACE_SEIZE
        LIBC.ptrace(17, yard["victim"], 0, 0)
        return worked

    return in_child(trace)


@attack
def read_anothers_memory(yard: dict[str, Any]) -> object:
    return Path(f"/proc/{yard['victim']}/maps").read_text()


@attack
def see_other_processes(yard: dict[str, Any]) -> object:
    return any(
        b"unreel-victim" in line.read_bytes() for line in Path("/proc").glob("[0-9]*/cmdline")
    )


@attack
def read_keys_of_the_environment(yard: dict[str, Any]) -> object:
    return any(yard["mark"] in value for value in os.environ.values())  # noqa: TID251


@attack
def read_keys_of_the_callers(yard: dict[str, Any]) -> object:
    mark = yard["mark"].encode()
    for process in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in process.read_bytes():
                return True
    return False


@attack
def use_inherited_descriptors(_yard: dict[str, Any]) -> object:
    kinds = (str(held.readlink()) for held in Path("/proc/self/fd").iterdir() if int(held.name) > 2)
    return [kind for kind in kinds if not kind.startswith("/proc/")]


# Rights, namespaces, other ways into the kernel.


@attack
def make_a_user_namespace(_yard: dict[str, Any]) -> object:
    return in_child(lambda: LIBC.unshare(0x10000000) == 0)


@attack
def clone_a_user_namespace(_yard: dict[str, Any]) -> object:
    def clone() -> bool:
        pid = call(56, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
        if pid == 0:
            os._exit(0)
        return True

    return os.uname().machine == "x86_64" and in_child(clone)


@attack
def make_a_namespace_by_clone3(_yard: dict[str, Any]) -> object:
    def clone() -> bool:
        pid = call(435, struct.pack("=11Q", 0x10000000, 0, 0, 0, signal.SIGCHLD, *[0] * 6), 88)
        if pid == 0:
            os._exit(0)
        return True

    return in_child(clone)


@attack
def mount_something(_yard: dict[str, Any]) -> object:
    def mount() -> bool:
        return LIBC.unshare(0x00020000) == 0 or LIBC.mount(b"none", b".", b"tmpfs", 0, None) == 0

    return in_child(mount)


@attack
def make_a_device(_yard: dict[str, Any]) -> object:
    os.mknod("device", 0o060666, os.makedev(254, 0))
    return Path("device").open("rb").read(1)


@attack
def call_by_the_x32_numbers(_yard: dict[str, Any]) -> object:
    return os.uname().machine == "x86_64" and in_child(lambda: call(0x40000000 | 39) > 0)


@attack
def call_as_another_machine(_yard: dict[str, Any]) -> object:
    def interrupt() -> bool:
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20; int 0x80; ret
        address = ctypes.addressof(ctypes.c_char.from_buffer(code))
        return ctypes.CFUNCTYPE(ctypes.c_int)(address)() > 0

    return os.uname().machine == "x86_64" and in_child(interrupt)


@attack
def have_a_capability(_yard: dict[str, Any]) -> object:
    lines = Path("/proc/self/status").read_text().splitlines()
    return [line for line in lines if line.startswith("Cap") and int(line.split()[1], 16)]


@attack
def fill_the_disk(_yard: dict[str, Any]) -> object:
    """Whether there is a place to write more than 2 GiB to."""
    for folder in (".", "/tmp", "/var/tmp", "/dev/shm", "/dev", "/", "/run"):
        room = os.statvfs(folder) if Path(folder).is_dir() else None
        if room is not None and room.f_bavail * room.f_frsize > 2 << 30:
            with contextlib.suppress(OSError):
                Path(folder, "attacked").write_bytes(b"x")
                Path(folder, "attacked").unlink()
                return True
    return False


def run_all(yard: dict[str, Any]) -> list[int]:
    """The numbers of the attacks that worked."""
    worked = []
    for number, each in enumerate(ATTACKS):
        with contextlib.suppress(Exception):
            if each(yard):
                worked.append(number)
    return worked


if __name__ == "__main__":
    sys.stderr.write("WORKED " + " ".join(map(str, run_all(json.loads(sys.argv[1])))))
    sys.exit(3)
