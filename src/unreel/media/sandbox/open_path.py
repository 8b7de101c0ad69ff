"""Opening a path that a stranger may have filled."""

import os
import stat
from pathlib import Path
from typing import Final

from unreel.core.errors import raise_refusal
from unreel.core.failure import Failure, FailureReason

# O_NONBLOCK: a path swapped for a FIFO after the check must not hang the caller.
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_KINDS: Final = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


def open_regular(path: Path) -> int | Failure:
    """Return a descriptor of the regular file at `path`, for reading, or the reason of a failure; never waits.

    The last component must not be a symbolic link. The parent folders may be: they belong to the
    user who named the path. A caller that trusts a link resolves the path first.
    """
    try:
        # Asked before opening, because to open a device can already make it act.
        wrong = _find_file_kind_failure(path.lstat().st_mode)
        if wrong is not None:
            return wrong
        descriptor = os.open(path, _FLAGS)
    except (OSError, ValueError) as error:
        raise_refusal(error)
        return Failure(FailureReason.NOT_A_FILE, f"it cannot be opened: {_format_error(error)}")
    wrong = _find_file_kind_failure(os.fstat(descriptor).st_mode)
    if wrong is not None:
        os.close(descriptor)
        return wrong
    return descriptor


def _find_file_kind_failure(mode: int) -> Failure | None:
    if stat.S_ISREG(mode):
        return None
    kind = _KINDS.get(stat.S_IFMT(mode), "no regular file")
    return Failure(FailureReason.NOT_A_FILE, f"it is {kind}")


def _format_error(error: OSError | ValueError) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
