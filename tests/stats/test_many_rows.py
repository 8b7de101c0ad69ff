"""Rows beyond counting one by one: labels held by their digests, groups drawn by their kind."""

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.estimate import Estimate, RowCluster
from unreel.stats.bootstrap import bootstrap_mean
from unreel.stats.clusters import ClusterIds, ClusterResampler, LabelNumbering, SharedLabelNumbering
from unreel.stats.jackknife_values import MAX_GROUPS
from unreel.stats.label_digests import LabelDigestList
from unreel.stats.row_sample import RowSample


@given(st.lists(st.text(max_size=3), max_size=40), st.integers(0, 5))
def test_labels_that_are_not_held_are_told_apart_as_well(labels: list[str], most: int) -> None:
    held, digested = LabelNumbering(), LabelNumbering(max_labels=most)
    for label in labels:
        held.add(label)
        digested.add(label)
    ours, theirs = held.numbers().tolist(), digested.numbers().tolist()
    assert (
        len({*zip(ours, theirs, strict=True)}) == len({*ours}) == len({*theirs}) == len({*labels})
    )
    assert [held.names[number] for number in ours] == labels


def test_labels_are_numbered_in_their_order() -> None:
    labels = LabelNumbering()
    for label in ("b", "a", "c", "a"):
        labels.add(label)
    assert labels.numbers().tolist() == [1, 0, 2, 0]


@given(st.lists(st.lists(st.text(max_size=2), max_size=20), max_size=4))
def test_labels_of_several_sets_of_rows_are_numbered_as_they_are_met(sets: list[list[str]]) -> None:
    known, numbers = LabelDigestList(), dict[str, int]()
    for labels in sets:
        shared = SharedLabelNumbering(known)
        for label in labels:
            shared.add(label)
            numbers.setdefault(label, len(numbers))
        assert shared.numbers().tolist() == [numbers[label] for label in labels]
        assert len(known) == len(numbers)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 250), st.integers(-1, 8)), min_size=1),
    st.sampled_from(("scene", "creator", "cell")),
)
def test_weights_without_a_group_count_the_rows_of_the_others(
    rows: list[tuple[int, int, int]], kind: Literal["scene", "creator", "cell"]
) -> None:
    value, scene, creator = np.array(rows, np.int32).T
    sample = RowSample.of((value,), ClusterIds(scene, creator))
    number = {"scene": scene, "creator": creator, "cell": scene + 37 * creator}[kind]
    is_never_left_out = (kind != "scene") & (creator < 0)
    weights = np.concatenate([*sample.group_counts(kind).without_each()])
    assert len(weights) == MAX_GROUPS
    for group, line in enumerate(weights):
        rest = value[is_never_left_out | (number % MAX_GROUPS != group)]
        assert line.tolist() == [np.sum(rest == each) for each in np.unique(value)]


def test_groups_drawn_by_kind_weigh_rows_as_groups_drawn_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(5)
    scenes = np.repeat(np.arange(300), rng.integers(1, 4, 300))
    values = rng.integers(0, 2, len(scenes)).astype(float)
    clusters = [RowCluster(f"{scene:03}") for scene in scenes]
    one_by_one = bootstrap_mean(values, seed=1, clusters=clusters, bounds=(0, 1))
    monkeypatch.setattr("unreel.stats.clusters.MANY", 20)
    draw = RowSample.of((values,), clusters).scenes
    assert (len(draw.sizes), draw.n_groups) == (9, 300)  # 1 to 3 rows, of which none to all are 1
    by_kind = bootstrap_mean(values, seed=1, clusters=clusters, bounds=(0, 1))
    assert isinstance(one_by_one, Estimate)
    assert isinstance(by_kind, Estimate)
    assert by_kind.value == one_by_one.value
    assert by_kind.low == pytest.approx(one_by_one.low, abs=0.005)
    assert by_kind.high == pytest.approx(one_by_one.high, abs=0.005)


def test_what_nobody_made_is_in_every_draw_by_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unreel.stats.clusters.MANY", 1)
    # Two rows of no group, then groups 0 and 1 that hold one of each distinct row, and 2 that holds the first.
    draw = ClusterResampler.of(np.array([-1, 0, 1, 2, -1, 0, 1]), np.array([0, 4]))
    weights = draw.draw(np.random.default_rng(0), 50)
    assert sorted(draw.sizes.tolist()) == [1, 2]
    assert (weights[:, 0] == 1 + 3).all()
    assert {*weights[:, 1].tolist()} <= {1.0, 2.0, 3.0, 4.0}


def test_the_order_of_scenes_changes_nothing_where_they_are_drawn_by_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("unreel.stats.clusters.MANY", 5)
    values = [float(i % 3 == 0) for i in range(60)]
    scenes = np.arange(60, dtype=np.int32) // 2
    nobody = np.full(60, -1, np.int32)
    found = [
        bootstrap_mean(values, seed=2, clusters=ClusterIds(order[scenes], nobody), bounds=(0, 1))
        for order in (np.arange(30, dtype=np.int32), np.arange(30, dtype=np.int32)[::-1])
    ]
    assert found[0] == found[1]
