"""Many tests at once."""

from hypothesis import given
from hypothesis import strategies as st

from unreel.stats.paired_differences import adjust_p_values_by_holm

Chances = st.lists(st.floats(0, 1), max_size=12)


def test_the_smallest_counts_most_and_none_overtakes_a_smaller_one() -> None:
    assert adjust_p_values_by_holm([0.01, 0.04, 0.03, 0.005]) == (0.03, 0.06, 0.06, 0.02)


def test_one_test_needs_no_correction_and_none_gives_none() -> None:
    assert adjust_p_values_by_holm([0.2]) == (0.2,)
    assert adjust_p_values_by_holm([]) == ()


@given(Chances)
def test_correction_keeps_the_order_and_never_makes_a_find_surer(chances: list[float]) -> None:
    counted = adjust_p_values_by_holm(chances)
    assert all(p <= q <= 1 for p, q in zip(chances, counted, strict=True))
    by_chance = sorted(zip(chances, counted, strict=True))
    assert [q for _, q in by_chance] == sorted(counted)
