"""Names that must not come twice."""

from collections.abc import Iterable, Iterator
from hashlib import blake2b

from unreel.benchmarks.entry import Entry, Rejected, Row


class Names:
    """The names seen so far, as digests of 16 bytes each."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def add(self, name: str) -> bool:
        """Remember `name`; False when it was there before."""
        digest = blake2b(name.encode(), digest_size=16).digest()
        if digest in self._seen:
            return False
        self._seen.add(digest)
        return True


def distinct(rows: Iterable[Row]) -> Iterator[Row]:
    """`rows`, where an entry whose name was there before is rejected."""
    names = Names()
    for row in rows:
        if isinstance(row, Entry) and not names.add(row.name):
            yield Rejected(row.name, "the name was there before. Give each clip its own")
        else:
            yield row
