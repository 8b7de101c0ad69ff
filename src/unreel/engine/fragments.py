"""Choose the fragments of a table to join: few remain, and no row is copied often.

Fragments are in the order of their writing. From the oldest on, one that the younger ones outweigh
`growth` - 1 times is joined with all of them, so the copied rows are then in a fragment `growth`
times as large: a row is copied about log(FULL_ROWS) / log(growth) times until its fragment is full.
The remaining fragments shrink from old to young, so there are few of them.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

FULL_ROWS: Final = 2**20
FULL_BYTES: Final = 2**28
"""Rows with long texts fill a fragment sooner: joining takes a while and as much memory, and a store takes whole files."""
_MOST_GONE: Final = 0.1
"""Share of replaced rows above which a fragment is written anew without them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFragment:
    """One fragment of a table, from its manifest."""

    id: int
    rows: int
    """Those that are left."""
    gone: int = 0
    """Those that were replaced and still lie in its file."""
    n_bytes: int = 0

    @property
    def is_full(self) -> bool:
        """Return whether it stays unchanged while the table grows."""
        return self.rows >= FULL_ROWS or self.n_bytes >= FULL_BYTES


def find_joins(
    fragments: Sequence[TableFragment], *, growth: int, at_least: int = 2
) -> list[list[TableFragment]]:
    """Return lists of neighbours that should each become one fragment; none of a run below `at_least`.

    A list of one is a fragment to rewrite without its replaced rows.
    """
    joins: list[list[TableFragment]] = []
    for full, run in itertools.groupby(fragments, key=lambda fragment: fragment.is_full):
        neighbours = list(run)
        if len(neighbours) < at_least and not full:
            continue
        tail = [] if full else _outweighing_tail(neighbours, growth)
        joins += _until_full(tail)
        kept = neighbours[: len(neighbours) - len(tail)]
        joins += [[one] for one in kept if one.gone > _MOST_GONE * (one.rows + one.gone)]
    return joins


def _outweighing_tail(loose: list[TableFragment], growth: int) -> list[TableFragment]:
    younger = sum(fragment.rows for fragment in loose)
    for place, fragment in enumerate(loose[:-1]):
        younger -= fragment.rows
        if younger >= (growth - 1) * fragment.rows:
            return loose[place:]
    return []


def _until_full(tail: list[TableFragment]) -> list[list[TableFragment]]:
    groups: list[list[TableFragment]] = []
    room_rows, room_bytes = 0, 0
    for fragment in tail:
        if room_rows <= 0 or room_bytes <= 0:
            groups.append([])
            room_rows, room_bytes = FULL_ROWS, FULL_BYTES
        groups[-1].append(fragment)
        room_rows -= fragment.rows
        room_bytes -= fragment.n_bytes
    return [group for group in groups if len(group) > 1]
