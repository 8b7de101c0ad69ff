"""A few clips for a first look are a fair share of both sides."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from unreel.benchmarks.entry import Entry
from unreel.benchmarks.statistics import sample_balanced_entries
from unreel.core.clip import Generated, Real

CREATORS = ("a", "b", "c")


def entry(name: str, creator: str | None, group: str = "") -> Entry:
    origin = Real() if creator is None else Generated(creator)
    return Entry(name=name, location=f"{name}.mp4", origin=origin, group=group)


def crossed(n_scenes: int) -> list[Entry]:
    """All generated clips first, as in a sorted table."""
    made = [entry(f"{c}-{s}", c, f"scene {s}") for c in CREATORS for s in range(n_scenes)]
    return made + [entry(f"real-{s}", None, f"scene {s}") for s in range(n_scenes)]


def test_the_first_rows_of_a_sorted_table_are_not_all_there_is() -> None:
    chosen = sample_balanced_entries(crossed(100), 24, seed=0)[0]
    makers = Counter(getattr(one.origin, "creator", None) for one in chosen)
    assert makers == {None: 12, "a": 4, "b": 4, "c": 4}


def test_how_many_were_drawn_of_how_many_is_told() -> None:
    drawn = sample_balanced_entries(crossed(100), 24, seed=7)[1]
    assert str(drawn) == "24 of 400 rows, drawn by seed 7: 12 real, 12 generated"


def test_clips_of_one_scene_come_together() -> None:
    scenes = Counter(one.group for one in sample_balanced_entries(crossed(100), 12, seed=3)[0])
    real = {
        one.group
        for one in sample_balanced_entries(crossed(100), 12, seed=3)[0]
        if isinstance(one.origin, Real)
    }
    assert {one for one, n in scenes.items() if n > 1} <= real
    assert len(scenes) == 6


def test_another_seed_takes_others_and_the_same_one_the_same() -> None:
    first, again = (sample_balanced_entries(crossed(100), 10, seed=1) for _ in range(2))
    assert first == again != sample_balanced_entries(crossed(100), 10, seed=2)


@given(
    st.lists(st.sampled_from([None, *CREATORS]), max_size=60), st.integers(1, 70), st.integers(0, 5)
)
def test_as_many_as_there_are_in_their_order_and_each_once(
    makers: list[str | None], n: int, seed: int
) -> None:
    entries = [entry(str(i), maker) for i, maker in enumerate(makers)]
    chosen = sample_balanced_entries(iter(entries), n, seed=seed)[0]
    places = [int(one.name) for one in chosen]
    assert places == sorted(set(places))
    assert len(chosen) == min(n, len(entries))
    n_real = sum(isinstance(one.origin, Real) for one in chosen)
    n_all_real = makers.count(None)
    assert n_real >= min(n_all_real, n // 2)
    assert len(chosen) - n_real >= min(len(makers) - n_all_real, n // 2)
