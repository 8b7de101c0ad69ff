"""Signals and memory of a command's process: Ctrl-C, stop signals, and limits of malloc."""

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from unreel.cli.output import format_rerun_command
from unreel.core.errors import GO_ON, UnreadableSourceError

if TYPE_CHECKING:
    from unreel.cli.progress import ProgressMeter


_M_ARENA_MAX = -8
"""Constant `M_ARENA_MAX` of glibc's malloc.h."""


def limit_malloc_arenas() -> None:
    """Limit malloc to two heaps: one per thread costs 20 MB more for 100,000 questions with Lance."""
    with contextlib.suppress(OSError, AttributeError):  # the C library is not glibc
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


_NAMES = {
    signal.SIGINT: "Ctrl-C",
    signal.SIGTERM: "SIGTERM",
    signal.SIGHUP: "the end of its terminal",
}
_STDERR = 2
_SHOW_CURSOR = "\x1b[?25h"
_STOPPING = "\nstopping: finished work is being stored; a second Ctrl-C exits immediately\n"
_FINISHING = "\nstopping: a checkpoint is saved after this step; a second Ctrl-C exits immediately, and keeps the last checkpoint\n"
_at_work: list[str] = []
"""Locations of the jobs that store finished work when they are stopped."""


class StopSignalReceived(BaseException):
    """Exception that the first stop signal raises; finished work is stored before the exit."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def status(self) -> int:
        """Return the exit status that shells use for a process that this signal stopped."""
        return 128 + self.number

    def __str__(self) -> str:
        return f"stopped by {_NAMES[signal.Signals(self.number)]}. {GO_ON}"


def install_signal_handlers() -> None:
    """Let the first stop signal raise `StopSignalReceived` and the second end; ignored ones stay so."""
    received: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        if received:
            if os.isatty(_STDERR):
                os.write(_STDERR, _SHOW_CURSOR.encode())
            os._exit(128 + number)
        received.append(number)
        if _at_work:
            os.write(_STDERR, _STOPPING.encode())
        raise StopSignalReceived(number)

    for number in _NAMES:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)


@contextmanager
def defer_first_stop_signal() -> Iterator[list[int]]:
    """Collect the first stop signal in the yielded list, instead of raising `StopSignalReceived`.

    The second stop signal ends the process. Use it for a job that must finish its current step
    before it can save its results.
    """
    received: list[int] = []

    def ask(number: int, _frame: FrameType | None) -> None:
        if received:
            os._exit(128 + number)
        received.append(number)
        os.write(_STDERR, _FINISHING.encode())

    before = {
        number: signal.signal(number, ask)
        for number in _NAMES
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def add_resume_note_on_stop(location: str, meter: "ProgressMeter") -> Iterator[None]:
    """Add notes to an exception that stops a job: the stored work, and the command to resume it."""
    _at_work.append(location)
    try:
        yield
    except (StopSignalReceived, OSError) as stopped:
        if parts := meter.spell_rows():
            stopped.add_note(f"{parts} of this call are stored in {location}, with earlier ones")
        if not isinstance(stopped, UnreadableSourceError):
            stopped.add_note(f"Go on with {format_rerun_command()}")
        raise
    finally:
        _at_work.remove(location)
