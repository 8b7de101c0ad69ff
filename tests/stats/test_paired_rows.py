"""Rows of two reviewers are paired by clip."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from unreel.stats.paired_differences import pair_rows_by_clip

Clips = st.lists(st.sampled_from("abcde"), max_size=12)


def test_repeated_rows_of_a_clip_are_paired_in_their_order() -> None:
    paired = pair_rows_by_clip(["a", "b", "a", "c"], ["a", "a", "d", "b"])
    assert paired.ours.tolist() == [0, 1, 2]
    assert paired.theirs.tolist() == [0, 3, 1]
    assert (paired.n_shown, paired.n_unshared) == (2, 2)
    assert paired.at(paired.ours > 0).theirs.tolist() == [3, 1]


@given(Clips, Clips)
def test_as_many_rows_of_a_clip_are_paired_as_both_have(ours: list[str], theirs: list[str]) -> None:
    paired = pair_rows_by_clip(ours, theirs)
    pairs = list(zip(paired.ours.tolist(), paired.theirs.tolist(), strict=True))
    assert all(ours[our] == theirs[their] for our, their in pairs)
    assert Counter(ours[our] for our, _ in pairs) == Counter(ours) & Counter(theirs)
    left = {*(Counter(ours) - Counter(theirs)), *(Counter(theirs) - Counter(ours))}
    assert paired.n_unshared == len(left)
