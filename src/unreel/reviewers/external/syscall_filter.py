"""Seccomp filter of sandboxed programs: everything is allowed except the system calls listed here.

Bubblewrap separates files, processes, users and the network. The filter denies what a program could
still use to reach the kernel or other programs of the machine: sockets, keys, new namespaces, attributes
of files, and system calls that are newer than this list.
"""

import errno
import os

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
# By number, because libseccomp may be too old for their names: io_uring_setup, io_uring_enter,
# io_uring_register; open_tree to fspick; pidfd_getfd, process_madvise, mount_setattr, quotactl_fd,
# memfd_secret, process_mrelease, fchmodat2, lsm_set_self_attr, setxattrat, removexattrat,
# open_tree_attr, file_setattr.
_REFUSED_NUMBERS = (*range(425, 434), *(438, 440, 442, 443, 447, 448, 452, 461, 463, 466, 467, 469))
_CLONE3 = 435
"""Unknown to the program: the C library then calls `clone`, whose flags can be compared."""
_NEWER = range(470, 1024)
"""Numbers of system calls that nobody has reviewed yet."""
_NAMESPACE_FLAGS = (0x20000, *(1 << bit for bit in range(25, 31)))
"""Flags of `clone` that create a namespace."""
_IOCTLS = (
    *(0x40086602, 0x40046602, 0x401C5820),  # FS_IOC_SETFLAGS, FS_IOC32_SETFLAGS, FS_IOC_FSSETXATTR
    *(0x40087602, 0x40047602, 0x40806685),  # FS_IOC(32)_SETVERSION, FS_IOC_ENABLE_VERITY
    *(0x800C6613, 0xC0506617),  # encryption policy and key
    *(0xC0045877, 0xC0045878, 0x5412, 0x541C),  # FIFREEZE, FITHAW, TIOCSTI, TIOCLINUX
)
_INT = 0xFFFFFFFF
"""Bits of an argument that the kernel reads as a C integer."""


def open_syscall_filter() -> int:
    """Return a descriptor of a file in memory with the filter as a BPF program, at its start.

    Raises:
        ImportError: libseccomp is missing.
    """
    from pyseccomp import ALLOW, EQ, ERRNO, MASKED_EQ, NE, Arg, Attr, SyscallFilter

    refuse, unknown = ERRNO(errno.EPERM), ERRNO(errno.ENOSYS)
    rules = SyscallFilter(ALLOW)
    rules.set_attr(Attr.ACT_BADARCH, unknown)
    rules.set_attr(Attr.CTL_OPTIMIZE, 2)  # a binary tree: 10 comparisons a call instead of 700
    for call in (*_REFUSED.split(), *_REFUSED_NUMBERS):
        rules.add_rule(refuse, call)
    for call in (_CLONE3, *_NEWER):
        rules.add_rule(unknown, call)
    for flag in _NAMESPACE_FLAGS:
        rules.add_rule(refuse, "clone", Arg(0, MASKED_EQ, flag, flag))
    for request in _IOCTLS:
        rules.add_rule(refuse, "ioctl", Arg(1, MASKED_EQ, _INT, request))
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
