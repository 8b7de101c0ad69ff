"""Who was at work when a process died: starts and finishes, kept in an append-only file.

A line is one `write`, so it outlives kill -9 of the writer without the price of `fsync`. A start that
no finish follows is a death. The first death may be anybody's fault, so the item runs again in company;
from the second on it is a suspect and runs alone; a suspect that dies alone, at its `DEATHS_ALLOWED`-th
death or later, is quarantined. So the neighbours of a clip that kills its worker are never condemned.
"""

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Final

from unreel.core.writing import Folder

DEATHS_ALLOWED: Final = 3
_DEATHS_IN_COMPANY: Final = 2
_REWRITE_BYTES: Final = 64 * 2**20
_BEGIN, _BEGIN_ALONE, _FINISH = "+", "!", "-"


class Order(StrEnum):
    """How an item may be run next."""

    RUN = "run"
    ALONE = "alone"
    QUARANTINE = "quarantine"


@dataclass(slots=True)
class _Record:
    deaths: int = 0
    open: bool = False
    """Started and not finished, by the process that writes now."""
    alone: bool = False
    """Whether the latest start was alone."""


class Ledger:
    """Counts the deaths of each item; its memory holds items in flight and suspects only."""

    def __init__(self, path: Path) -> None:
        self._folder, self._name = Folder(path.parent), path.name
        self._records: dict[str, _Record] = {}
        for sign, item in self._lines():
            self._note(sign, item)
        self._bury()
        self._file = self._rewrite()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the writing; what is open counts as dead for the next reader."""
        os.close(self._file)

    def order(self, item: str) -> Order:
        """How `item` may be run, given its deaths so far."""
        record = self._records.get(item)
        if record is None:
            return Order.RUN
        deaths = record.deaths + record.open
        if deaths >= DEATHS_ALLOWED and record.alone:
            return Order.QUARANTINE
        return Order.ALONE if deaths >= _DEATHS_IN_COMPANY else Order.RUN

    def deaths(self, item: str) -> int:
        """How often `item` was started and not finished."""
        record = self._records.get(item)
        return 0 if record is None else record.deaths + record.open

    def begin(self, item: str, *, alone: bool = False) -> None:
        """Write down that `item` starts now; a start of an open item is a death of the one before."""
        self._write(_BEGIN_ALONE if alone else _BEGIN, item)

    def finish(self, item: str) -> None:
        """Write down that `item` came back, whatever it brought: its deaths are forgotten."""
        self._write(_FINISH, item)

    def withdraw(self) -> None:
        """Forget the starts that are open: their worker was stopped on purpose."""
        for item, record in list(self._records.items()):
            if record.open:
                self._write(_FINISH, item)

    def _write(self, sign: str, item: str) -> None:
        self._note(sign, item)
        os.write(self._file, f"{sign}{item}\n".encode())
        if os.lseek(self._file, 0, os.SEEK_CUR) > _REWRITE_BYTES:
            os.close(self._file)
            self._file = self._rewrite()

    def _note(self, sign: str, item: str) -> None:
        if sign == _FINISH:
            self._records.pop(item, None)
            return
        record = self._records.setdefault(item, _Record())
        record.deaths += record.open
        record.open, record.alone = True, sign == _BEGIN_ALONE

    def _bury(self) -> None:
        for record in self._records.values():
            record.deaths += record.open
            record.open = False

    def _lines(self) -> Iterator[tuple[str, str]]:
        try:
            found = self._folder.read(self._name)
        except FileNotFoundError:
            return
        with io.TextIOWrapper(found, encoding="utf-8", errors="replace") as file:
            for line in file:
                # A line without its end was cut by a power failure: its start never came to pass.
                if line.endswith("\n") and line[0] in (_BEGIN, _BEGIN_ALONE, _FINISH):
                    yield line[0], line[1:-1]

    def _rewrite(self) -> int:
        """Replace the file by the shortest one that says the same, and go on writing there."""
        fresh = f"{self._name}.new"
        file = self._folder.open_fresh(fresh, os.O_WRONLY | os.O_APPEND)
        for item, record in self._records.items():
            starts = record.deaths + record.open
            signs = [_BEGIN] * (starts - 1) + [_BEGIN_ALONE if record.alone else _BEGIN]
            os.write(file, "".join(f"{sign}{item}\n" for sign in signs).encode())
        os.fsync(file)
        self._folder.rename(fresh, self._name)
        return file
