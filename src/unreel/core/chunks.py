"""Sizes of the chunks in which rows and files are read, and splitting of items into chunks."""

import itertools
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

LOOKUP_ROWS = 2_048
SCAN_ROWS = 1_024
READ_BYTES = 1 << 20


def iter_chunks(items: Iterable[T], size: int = LOOKUP_ROWS) -> Iterator[list[T]]:
    """Yield lists of `size` items in order; the last one may be shorter."""
    source = iter(items)
    while chunk := list(itertools.islice(source, size)):
        yield chunk
