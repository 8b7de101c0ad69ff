"""Memory settings of the command line; a library must not decide them for its host."""

import contextlib
import ctypes
from typing import Final

_M_ARENA_MAX: Final = -8
"""From glibc's malloc.h."""


def limit_heaps() -> None:
    """Let threads share two heaps: glibc gives each its own, which keeps the most it ever held.

    Lance has many threads; with their heaps apart, 100,000 questions took 20 MB more.
    """
    with contextlib.suppress(OSError, AttributeError):  # another C library has other ways
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)
