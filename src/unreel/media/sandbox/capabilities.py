"""Removal of Linux capabilities, the special rights of root: no child of the zygote has one.

The watchdog of a program loads this file by its path.
"""

import ctypes
import os

_PR_CAPBSET_DROP = 24
_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_CLEAR_ALL = 4
_VERSION = 0x20080522
_MAX_NUMBER = 64


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapabilitySets(ctypes.Structure):
    _fields_ = (("words", ctypes.c_uint32 * 6),)


def drop_capabilities(libc: ctypes.CDLL) -> None:
    """Drop every capability of this process permanently; this needs no rights of its own.

    Raise `OSError` if the capabilities cannot be dropped.
    """
    # Only root may change its bounding set. Other users do not need that: without new
    # privileges no program that is started from here gets a capability.
    for number in range(_MAX_NUMBER):
        _try_prctl(libc, _PR_CAPBSET_DROP, number)
    _try_prctl(libc, _NO_NEW_PRIVS, 1)
    _try_prctl(libc, _PR_CAP_AMBIENT, _CLEAR_ALL)
    if (
        libc.capset(ctypes.byref(_CapabilityHeader(_VERSION, 0)), ctypes.byref(_CapabilitySets()))
        != 0
    ):
        raise OSError(ctypes.get_errno(), "capabilities cannot be given up")


def has_capabilities(libc: ctypes.CDLL) -> bool:
    """Return whether this process has or can acquire a capability."""
    sets = _CapabilitySets()
    if libc.capget(ctypes.byref(_CapabilityHeader(_VERSION, 0)), ctypes.byref(sets)) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return any(sets.words)


def _try_prctl(libc: ctypes.CDLL, option: int, value: int) -> int:
    return int(libc.prctl(option, *[ctypes.c_ulong(number) for number in (value, 0, 0, 0)]))
