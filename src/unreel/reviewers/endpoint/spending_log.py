"""Log of the cost of a run's requests: an append-only file that survives `kill -9`.

Each line is an amount in US dollars, written in one piece. A reservation is written before its
request is sent, and the difference from the actual cost is written after the reply. So a
request whose reply is lost stays counted with its reservation.
"""

import errno
import os
from decimal import Decimal, InvalidOperation
from pathlib import Path

from unreel.core.output_files import OutputDirectory


class SpendingLog:
    """Adds up the amounts in one file; open it in the process that spends."""

    def __init__(self, path: Path) -> None:
        folder = OutputDirectory(path.parent)
        self.total_usd = read_spent(path)
        self._file = folder.open(path.name, os.O_WRONLY | os.O_APPEND)

    def add(self, amount_usd: Decimal) -> None:
        """Write an amount down.

        Raises:
            OSError: The file cannot be written: nothing more may be spent.
        """
        line = f"{amount_usd}\n".encode()
        n_written = os.write(self._file, line)
        if n_written != len(line):  # the disk is full: half a line would spoil the next one
            os.ftruncate(self._file, os.fstat(self._file).st_size - n_written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.total_usd += amount_usd

    def close(self) -> None:
        """End the writing."""
        os.close(self._file)


def read_spent(path: Path) -> Decimal:
    """Return the sum of the amounts at `path`; 0 if the file is missing."""
    try:
        with OutputDirectory(path.parent).read(path.name) as file:
            return sum((_parse_amount(line) for line in file), Decimal())
    except FileNotFoundError:
        return Decimal()


def begin_log(path: Path, *, at_least_usd: Decimal) -> Decimal:
    """Replace the log with one line, the larger of its sum and `at_least_usd`; return that amount.

    Call it while no other process spends money.
    """
    spent_usd = max(read_spent(path), at_least_usd)
    OutputDirectory(path.parent).write(path.name, f"{spent_usd}\n".encode())
    return spent_usd


def _parse_amount(line: bytes) -> Decimal:
    try:
        amount = Decimal(line.decode()) if line.endswith(b"\n") else Decimal()
    except (InvalidOperation, UnicodeDecodeError):
        return Decimal()  # a power cut tore the line
    return amount if amount.is_finite() else Decimal()
