"""Splits: bound clips stay together, shares are met, order does not matter."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from unreel.curation.freeze.step import SplitCandidate, assign_splits

SHARES = {"train": 8, "val": 1, "test": 1}


def members(n: int, *, ties: int = 0) -> list[SplitCandidate]:
    return [
        SplitCandidate(
            clip=f"{number:04d}",
            label="real" if number % 2 else "generated",
            ties=(f"scene {number % ties}",) if ties else (),
        )
        for number in range(n)
    ]


def test_shares_are_met_for_each_label() -> None:
    clips = members(200)
    chosen = assign_splits(clips, split_parts=SHARES, seed=1)
    tally = Counter((chosen[one.clip], one.label) for one in clips)
    assert tally == {
        (split, label): 100 * share // 10
        for split, share in SHARES.items()
        for label in ("real", "generated")
    }


def test_ties_reach_through_others() -> None:
    chain = [
        SplitCandidate(clip="a", label="real", ties=("one",)),
        SplitCandidate(clip="b", label="real", ties=("one", "two")),
        SplitCandidate(clip="c", label="generated", ties=("two",)),
    ]
    assert len(set(assign_splits(chain, split_parts=SHARES, seed=3).values())) == 1


@given(
    ties=st.lists(st.sets(st.integers(0, 12), max_size=3), min_size=1, max_size=40),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_bound_clips_share_a_split_in_any_order(ties, seed, data) -> None:
    clips = [
        SplitCandidate(
            clip=f"{number:03d}",
            label=("real", "generated")[number % 2],
            ties=tuple(f"tie {one}" for one in sorted(bound)),
        )
        for number, bound in enumerate(ties)
    ]
    chosen = assign_splits(clips, split_parts=SHARES, seed=seed)
    shuffled = data.draw(st.permutations(clips))
    assert assign_splits(shuffled, split_parts=SHARES, seed=seed) == chosen
    for one in clips:
        for other in clips:
            if set(one.ties) & set(other.ties):
                assert chosen[one.clip] == chosen[other.clip]
