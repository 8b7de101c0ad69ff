"""Fragments stay few, and rows are copied seldom, in whatever sizes they come."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.engine.table_writer import FULL_BYTES, FULL_ROWS, TableFragment, find_fragments_to_join

EVERY = 32
ROW_BYTES = 300


def grow(
    commits: Sequence[int], *, growth: int, row_bytes: int = ROW_BYTES
) -> tuple[list[TableFragment], float]:
    """What is left of fragments that are joined now and then, and how often a row was copied."""
    fragments: list[TableFragment] = []
    copied = number = 0
    for n_commits, rows in enumerate(commits, start=1):
        number += 1
        fragments.append(TableFragment(id=number, rows=rows, n_bytes=rows * row_bytes))
        if n_commits % EVERY:
            continue
        for joined in find_fragments_to_join(fragments, growth=growth):
            at = fragments.index(joined[0])
            assert fragments[at : at + len(joined)] == joined, "only neighbours become one"
            n_joined = sum(fragment.rows for fragment in joined)
            copied += n_joined
            number += 1
            whole = TableFragment(id=number, rows=n_joined, n_bytes=n_joined * row_bytes)
            fragments[at : at + len(joined)] = [whole]
    assert sum(fragment.rows for fragment in fragments) == sum(commits)
    return fragments, copied / sum(commits)


@pytest.mark.parametrize("rows", [1, 256, 5_000, 100_000])
def test_commits_of_one_size_leave_few_fragments_and_copy_a_row_a_few_times(rows: int) -> None:
    commits = [rows] * min(20_000, 20_000_000 // rows)
    left, copies = grow(commits, growth=8)
    n_full = sum(fragment.is_full for fragment in left)
    assert n_full <= sum(commits) / min(FULL_ROWS, FULL_BYTES / ROW_BYTES)
    assert len(left) - n_full <= EVERY + 7 * 5
    assert copies <= 1 + math.log(FULL_ROWS / (EVERY * rows) + 1, 8) + 1


@given(st.lists(st.integers(1, 2 * FULL_ROWS), max_size=40), st.integers(0, 4_000))
def test_a_full_fragment_is_never_copied_and_no_join_is_much_more_than_full(
    sizes: list[int], row_bytes: int
) -> None:
    fragments = [
        TableFragment(id=number, rows=rows, n_bytes=rows * row_bytes)
        for number, rows in enumerate(sizes)
    ]
    for joined in find_fragments_to_join(fragments, growth=2):
        assert not any(fragment.is_full for fragment in joined)
        assert sum(fragment.rows for fragment in joined) < 2 * FULL_ROWS
        assert sum(fragment.n_bytes for fragment in joined) < 2 * FULL_BYTES


def test_a_fragment_is_written_anew_once_a_tenth_of_it_was_replaced() -> None:
    worn = TableFragment(id=0, rows=FULL_ROWS, gone=FULL_ROWS // 8)
    fresh = TableFragment(id=1, rows=FULL_ROWS, gone=FULL_ROWS // 10)
    assert find_fragments_to_join([worn, fresh], growth=8) == [[worn]]
