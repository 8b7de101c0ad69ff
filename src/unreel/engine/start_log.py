"""Append-only log of started and finished items, which shows the items in flight during a crash.

A line is one `write`, so it survives kill -9 of the writer without the cost of `fsync`. A start
without a finish is a crash. The first one may have any cause, so the item runs again together
with others; from `DEATHS_IN_COMPANY` on it is a suspect: see `crash_suspects`.
"""

import io
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from unreel.core.errors import UnreadableSourceError
from unreel.core.output_files import OutputDirectory

DEATHS_IN_COMPANY = 2
_REWRITE_BYTES = 64 * 2**20
_LARGEST_BYTES = 2 * _REWRITE_BYTES
_BEGIN, _BEGIN_ALONE, _FINISH = "+", "!", "-"
"""Signs of the log's lines; older logs mark starts of suspects with `!`."""
SIGNS = (_BEGIN, _BEGIN_ALONE, _FINISH)
"""First characters of valid lines."""


class ItemStartLog:
    """Log of started and finished items, with crash counts; only open items and suspects are in memory."""

    def __init__(self, path: Path) -> None:
        self._folder, self._name = OutputDirectory(path.parent), path.name
        self._n_starts: Counter[str] = Counter()
        """Number of starts of each item that is not finished."""
        self._open: set[str] = set()
        """Items that the present process has started and not finished."""
        self._n_bytes = 0
        for sign, item in self._lines():
            self._note(sign, item)
        self._open.clear()
        self._file = self._rewrite()

    def __enter__(self) -> "ItemStartLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the log; open items count as crashed for the next reader."""
        os.close(self._file)

    def deaths(self, item: str) -> int:
        """Return the number of times that `item` was started and not finished."""
        return self._n_starts[item]

    def is_suspect(self, item: str) -> bool:
        """Return whether `item` must run in isolation."""
        return self.deaths(item) >= DEATHS_IN_COMPANY

    def has_suspects(self) -> bool:
        """Return whether any item must run in isolation."""
        return any(map(self.is_suspect, self._n_starts))

    def begin(self, item: str) -> None:
        """Record the start of `item`; if it was already started, its earlier start counts as a crash."""
        self._write(_BEGIN, item)

    def finish(self, item: str) -> None:
        """Record the finish of `item`, with any result; its crash count is deleted."""
        self._write(_FINISH, item)

    def withdraw(self) -> None:
        """Delete the starts without a finish from the log, because their worker was stopped on purpose."""
        for item in self._open:
            del self._n_starts[item]
        self._open.clear()
        # Truncated in place, which works on a full disk; else these starts count as crashes.
        os.ftruncate(self._file, 0)
        self._write_records(self._file)

    def _write(self, sign: str, item: str) -> None:
        self._note(sign, item)
        self._n_bytes += os.write(self._file, f"{sign}{item}\n".encode())
        if self._n_bytes > _REWRITE_BYTES:
            os.close(self._file)
            self._file = self._rewrite()

    def _note(self, sign: str, item: str) -> None:
        if sign == _FINISH:
            del self._n_starts[item]
            self._open.discard(item)
            return
        self._n_starts[item] += 1
        self._open.add(item)

    def _lines(self) -> Iterator[tuple[str, str]]:
        try:
            raw = self._folder.read(self._name)
        except FileNotFoundError:
            return
        if os.fstat(raw.fileno()).st_size > _LARGEST_BYTES:
            raw.close()
            source = str(self._folder.root / self._name)
            raise UnreadableSourceError(
                source, "the file is far too large for a ledger", "Take it away and run again"
            )
        with io.TextIOWrapper(raw, encoding="utf-8", errors="replace") as file:
            for line in file:
                # A line without its end was cut off by a power failure: its item never started.
                if line.endswith("\n") and line[0] in SIGNS:
                    yield line[0], line[1:-1]

    def _rewrite(self) -> int:
        """Replace the log file by a shorter one with the same crash counts; return its open descriptor."""
        fresh = f"{self._name}.new"
        file = self._folder.open_fresh(fresh, os.O_WRONLY | os.O_APPEND)
        self._write_records(file)
        os.fsync(file)
        self._folder.rename(fresh, self._name)
        return file

    def _write_records(self, file: int) -> None:
        self._n_bytes = 0
        for item, n_starts in self._n_starts.items():
            self._n_bytes += os.write(file, f"{_BEGIN}{item}\n".encode() * n_starts)
