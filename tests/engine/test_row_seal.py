"""Seals of whole batches are those of their rows."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from unreel.engine.schema import compute_row_seal, compute_row_seals

CELLS = st.one_of(
    st.lists(st.one_of(st.none(), st.text()), min_size=3, max_size=3),
    st.lists(st.one_of(st.none(), st.integers()), min_size=3, max_size=3),
    st.lists(st.one_of(st.none(), st.floats()), min_size=3, max_size=3),
    st.lists(st.one_of(st.none(), st.binary(), st.booleans()), min_size=3, max_size=3),
)


@given(st.dictionaries(st.text(min_size=1), CELLS, min_size=1, max_size=5))
def test_a_batch_has_the_seals_of_its_rows(columns: dict[str, list[Any]]) -> None:
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    assert compute_row_seals(columns) == [compute_row_seal(row) for row in rows]
