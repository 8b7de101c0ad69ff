"""Process of a command: Ctrl-C, stop signals, system faults, and memory settings."""

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final

from unreel.cli.output import format_rerun_command
from unreel.core.errors import GO_ON, UnreadableSourceError

if TYPE_CHECKING:
    from unreel.cli.progress import ProgressMeter


_M_ARENA_MAX: Final = -8
"""From glibc's malloc.h."""


def limit_malloc_arenas() -> None:
    """Limit glibc's malloc to two heaps for all threads, so that less freed memory is retained.

    By default each thread has its own heap; with Lance, 100,000 questions then took 20 MB more.
    """
    with contextlib.suppress(OSError, AttributeError):  # another C library has other ways
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


_NAMES: Final = {
    signal.SIGINT: "Ctrl-C",
    signal.SIGTERM: "SIGTERM",
    signal.SIGHUP: "the end of its terminal",
}
_STDERR: Final = 2
_SHOW_CURSOR: Final = "\x1b[?25h"
_STOPPING: Final = "\nstopping: finished work is being stored; a second Ctrl-C exits immediately\n"
_FINISHING: Final = "\nstopping: a checkpoint is saved after this step; a second Ctrl-C exits immediately, and the last one stays\n"
_at_work: Final[list[str]] = []
"""Locations of the jobs that store finished work when they are stopped."""


class StopSignal(BaseException):
    """Exception for the first stop signal; finished work is still committed before the exit."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def status(self) -> int:
        """Return the shell's exit status for this signal."""
        return 128 + self.number

    def __str__(self) -> str:
        return f"stopped by {_NAMES[signal.Signals(self.number)]}. {GO_ON}"


def install_signal_handlers() -> None:
    """Let the first Ctrl-C, SIGTERM or SIGHUP raise `StopSignal`, and the second end the process.

    Ignored signals stay ignored, as `nohup` and background jobs of a shell require.
    """
    heard: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        if heard:
            if os.isatty(_STDERR):
                os.write(_STDERR, _SHOW_CURSOR.encode())
            os._exit(128 + number)
        heard.append(number)
        if _at_work:
            os.write(_STDERR, _STOPPING.encode())
        raise StopSignal(number)

    for number in _NAMES:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)


@contextmanager
def defer_first_signal() -> Iterator[list[int]]:
    """Yield a list that receives the first stop signal; the second stop signal ends the process.

    Use it for a job that can save its results, but not in the middle of a step.
    """
    heard: list[int] = []

    def ask(number: int, _frame: FrameType | None) -> None:
        if heard:
            os._exit(128 + number)
        heard.append(number)
        os.write(_STDERR, _FINISHING.encode())

    before = {
        number: signal.signal(number, ask)
        for number in _NAMES
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def note_resume_command(location: str, meter: "ProgressMeter") -> Iterator[None]:
    """Add the amount of stored work and the command to resume to an exception that stops a job."""
    _at_work.append(location)
    try:
        yield
    except (StopSignal, OSError) as stopped:
        if parts := meter.spell_rows():
            stopped.add_note(f"Of this call {parts} are kept in {location}, and all from before")
        if not isinstance(stopped, UnreadableSourceError):
            stopped.add_note(f"Go on with {format_rerun_command()}")
        raise
    finally:
        _at_work.remove(location)
