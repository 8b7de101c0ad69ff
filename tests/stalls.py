"""How long this machine kept ready processes waiting: a time limit can be held to account only beyond it."""

import os
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TICK_S = 0.02
# A process of its own: a thread would take our own holding of the interpreter for a busy machine.
_TICKER = f"""
import os, struct, sys, time
file = os.open(sys.argv[1], os.O_WRONLY)
late_s = 0.0
while os.getppid() == int(sys.argv[2]):
    began_s = time.monotonic()
    time.sleep({_TICK_S})
    late_s += max(0.0, time.monotonic() - began_s - 2 * {_TICK_S})
    os.pwrite(file, struct.pack("d", late_s), 0)
"""


class Stalls:
    """Reads what the ticker wrote."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def seconds(self) -> float:
        """Time by which the ticker woke too late, summed since it started."""
        time.sleep(3 * _TICK_S)
        return float(struct.unpack("d", self._file.read_bytes())[0])


@contextmanager
def watch_stalls(file: Path) -> Iterator[Stalls]:
    """Run a ticker that writes to `file`, for as long as the context lasts."""
    file.write_bytes(struct.pack("d", 0.0))
    command = [sys.executable, "-S", "-c", _TICKER, str(file), str(os.getpid())]
    with subprocess.Popen(command) as ticker:
        try:
            yield Stalls(file)
        finally:
            ticker.terminate()
