"""Seccomp filter of sandboxed programs, as BPF bytes for bubblewrap and prctl.

System calls with numbers above `NEWEST` are denied because they were not reviewed. Arguments
that the kernel reads as 32 bits are compared as 32 bits.
"""

import errno
import struct
from typing import Final

NEWEST: Final = 469
"""Number of `file_setattr`, the newest reviewed system call; from 424 on all architectures have the same numbers."""
_DENIED: Final = (
    # Network, and other access to processes outside the sandbox.
    *("socket", "connect", "bind", "listen", "accept", "accept4", "sendmsg", "sendmmsg"),
    *("shmget", "shmat", "semget", "msgget", "msgsnd", "mq_open"),
    *("ptrace", "process_vm_readv", "process_vm_writev", "kcmp"),
    # Attributes of files.
    *("chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "fchownat"),
    *("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr"),
    *("utime", "utimes", "utimensat", "futimesat"),
    # Namespaces, mounts and system administration.
    *("mount", "umount2", "pivot_root", "chroot", "setns", "unshare", "open_by_handle_at"),
    *("bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key", "request_key", "acct"),
    *("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot"),
    *("swapon", "swapoff", "quotactl", "settimeofday", "clock_settime", "clock_adjtime"),
    *("adjtimex", "sethostname", "setdomainname", "iopl", "ioperm", "syslog", "vhangup"),
    *("personality", "modify_ldt"),
)
_DENIED_NUMBERS: Final = (
    *(425, 426, 427),  # io_uring_setup, io_uring_enter, io_uring_register
    *(428, 429, 430, 431, 432, 433),  # open_tree, move_mount, fsopen, fsconfig, fsmount, fspick
    *(438, 440),  # pidfd_getfd, process_madvise
    *(
        442,
        443,
        447,
        448,
        452,
    ),  # mount_setattr, quotactl_fd, memfd_secret, process_mrelease, fchmodat2
    *(
        461,
        463,
        466,
        467,
        469,
    ),  # lsm_set_self_attr, setxattrat, removexattrat, open_tree_attr, file_setattr
)
"""Denied system calls, by number because libseccomp may be too old to know their names."""
_CLONE3: Final = 435
_NAMESPACES: Final = 0x7E020000
"""Flags of `clone` that create a namespace, except for time, which only `clone3` and `unshare` can create."""
_IOCTLS: Final = (
    *(0x40086602, 0x40046602, 0x401C5820),  # FS_IOC_SETFLAGS, FS_IOC32_SETFLAGS, FS_IOC_FSSETXATTR
    *(0x40087602, 0x40047602, 0x40806685),  # FS_IOC(32)_SETVERSION, FS_IOC_ENABLE_VERITY
    *(
        0x800C6613,
        0xC0506617,
        0xC0045877,
        0xC0045878,
    ),  # encryption policy and key, FIFREEZE, FITHAW
    *(0x5412, 0x541C),  # TIOCSTI, TIOCLINUX
)
_UNIX: Final = 1
_STREAM: Final = 1
_KIND_OF_SOCKET: Final = 0xF

_LOAD: Final = 0x20
_AND: Final = 0x54
_RETURN: Final = 0x06
_EQUAL: Final = 0x15
_GREATER: Final = 0x25
_ANY_BIT: Final = 0x45
_NUMBER: Final = 0
_ARCHITECTURE: Final = 4
_ARGUMENTS: Final = 16
_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000 | errno.EPERM
_UNKNOWN: Final = 0x00050000 | errno.ENOSYS
_KILL: Final = 0x80000000


def build_syscall_filter() -> bytes:
    """Return the seccomp filter for this machine's architecture, as a BPF program.

    Raises:
        ImportError: libseccomp is missing, which resolves the names of system calls.
    """
    import pyseccomp

    machine = pyseccomp.system_arch()

    def find(name: str) -> int:
        return int(pyseccomp.resolve_syscall(machine, name))  # negative if it does not exist here

    denied = {number for name in _DENIED if (number := find(name)) >= 0}
    return b"".join(
        (
            *(
                _encode_bpf_load(_ARCHITECTURE),
                _encode_bpf_return_unless(_EQUAL, int(machine), _KILL),
                _encode_bpf_load(_NUMBER),
            ),
            _encode_bpf_return_if(_GREATER, NEWEST, _UNKNOWN),
            _encode_bpf_return_if(
                _EQUAL, _CLONE3, _UNKNOWN
            ),  # The C library then uses `clone`, whose flags are visible.
            *(
                _encode_bpf_return_if(_EQUAL, number, _REFUSE)
                for number in sorted(denied | {*_DENIED_NUMBERS})
            ),
            _encode_syscall_checks(
                find("clone"),
                _encode_bpf_argument_load(0),
                _encode_bpf_return_if(_ANY_BIT, _NAMESPACES, _REFUSE),
            ),
            _encode_syscall_checks(
                find("ioctl"),
                _encode_bpf_argument_load(1),
                *(_encode_bpf_return_if(_EQUAL, request, _REFUSE) for request in _IOCTLS),
            ),
            # Datagram sockets can send to any address; a pair of stream sockets cannot.
            _encode_syscall_checks(
                find("socketpair"),
                *(_encode_bpf_argument_load(0), _encode_bpf_return_unless(_EQUAL, _UNIX, _REFUSE)),
                *(
                    _encode_bpf_argument_load(1),
                    _encode_bpf_instruction(_AND, _KIND_OF_SOCKET),
                    _encode_bpf_return_unless(_EQUAL, _STREAM, _REFUSE),
                ),
            ),
            # Only without an address, as `send` calls it.
            _encode_syscall_checks(
                find("sendto"),
                *(_encode_bpf_argument_load(4), _encode_bpf_return_unless(_EQUAL, 0, _REFUSE)),
                *(
                    _encode_bpf_argument_load(4, high=True),
                    _encode_bpf_return_unless(_EQUAL, 0, _REFUSE),
                ),
            ),
            _encode_bpf_instruction(_RETURN, _ALLOW),
        )
    )


def _encode_bpf_instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _encode_bpf_load(offset: int) -> bytes:
    return _encode_bpf_instruction(_LOAD, offset)


def _encode_bpf_argument_load(number: int, *, high: bool = False) -> bytes:
    return _encode_bpf_load(_ARGUMENTS + 8 * number + (4 if high else 0))


def _encode_bpf_return_if(test: int, value: int, action: int) -> bytes:
    return _encode_bpf_instruction(test, value, 0, 1) + _encode_bpf_instruction(_RETURN, action)


def _encode_bpf_return_unless(test: int, value: int, action: int) -> bytes:
    return _encode_bpf_instruction(test, value, 1, 0) + _encode_bpf_instruction(_RETURN, action)


def _encode_syscall_checks(number: int, *steps: bytes) -> bytes:
    """Encode the checks `steps` of the system call `number`, which is allowed if no check denies it."""
    block = b"".join((*steps, _encode_bpf_instruction(_RETURN, _ALLOW)))
    return _encode_bpf_instruction(_EQUAL, number, 0, len(block) // 8) + block
