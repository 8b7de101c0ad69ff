"""More lines than memory holds, in one order: sorted in runs on disk, merged as they are read."""

import heapq
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Final

from unreel.core.output_files import OutputDirectory

_RUN: Final = 20_000
"""Number of items that are sorted in memory."""
_OPEN: Final = 16
"""Runs that are read at once."""

Line = tuple[Any, ...]
"""Values that JSON has; lines are in the order of such tuples."""


class SortedRuns:
    """Takes lines in any order and puts them down in sorted runs, as files of a folder."""

    def __init__(self, folder: OutputDirectory, name: str) -> None:
        self._folder, self._name = folder, name
        self._files: list[str] = []
        self._waiting: list[Line] = []
        self._n_put_down = 0

    def add(self, line: Line) -> None:
        """Add one line."""
        self._waiting.append(line)
        if len(self._waiting) == _RUN:
            self._sort()

    def end(self) -> tuple[str, ...]:
        """Write the remaining lines and return the file names.

        Files are merged until at most 16 remain, because a reader opens all of them at once.
        """
        if self._waiting:
            self._sort()
        while len(self._files) > _OPEN:
            joined, self._files = self._files[:_OPEN], self._files[_OPEN:]
            self._put_down(read_runs(self._folder, joined))
            for name in joined:
                self._folder.remove(name)
        return tuple(self._files)

    def _sort(self) -> None:
        self._put_down(sorted(self._waiting))
        self._waiting = []

    def _put_down(self, ordered: Iterable[Line]) -> None:
        name = f"{self._name}-{self._n_put_down}.jsonl"
        with self._folder.create_text(name) as file:
            file.writelines(json.dumps(line) + "\n" for line in ordered)
        self._files.append(name)
        self._n_put_down += 1


def read_runs(folder: OutputDirectory, files: Sequence[str]) -> Iterator[Line]:
    """Yield the lines of all files in sorted order."""
    with ExitStack() as stack:
        runs = [stack.enter_context(folder.read(name)) for name in files]
        yield from heapq.merge(*(map(_parse_line, run) for run in runs))


def _parse_line(text: bytes) -> Line:
    return tuple(json.loads(text))
