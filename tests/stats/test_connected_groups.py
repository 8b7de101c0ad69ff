"""What belongs together because it is joined, directly or through others."""

from hypothesis import given
from hypothesis import strategies as st

from unreel.stats.clusters import group_connected_names


def test_names_are_joined_through_others_and_keep_their_order() -> None:
    assert group_connected_names(["a", "b", "c", "d"], [("d", "b"), ("b", "a")]) == [
        ["a", "b", "d"],
        ["c"],
    ]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20))
def test_every_pair_ends_in_one_group_and_no_name_is_lost(pairs: list[tuple[int, int]]) -> None:
    names = [str(n) for n in range(10)]
    groups = group_connected_names(names, [(str(a), str(b)) for a, b in pairs])
    assert sorted(name for group in groups for name in group) == names
    where = {name: place for place, group in enumerate(groups) for name in group}
    assert all(where[str(a)] == where[str(b)] for a, b in pairs)
