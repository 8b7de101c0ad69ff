"""Tasks are dealt fairly, the same way each time, and in an order that does not give answers away."""

import itertools
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaigns import task_of, tasks_of
from pace import slowness
from unreel.annotation.campaign import AnnotationTask, PrefillStudyArm, TaskAssignment, VoteAnswer
from unreel.annotation.tasks import assign_tasks_to_annotators, list_task_scenes
from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.core.judgement import Label

NAMES = tuple(f"p{n:02}" for n in range(20))
FAKE = VoteAnswer(label=Label.GENERATED)


def count_neighbours(tasks: Iterable[AnnotationTask], assignments: Iterable[TaskAssignment]) -> int:
    """Return the number of times that a scene or clip is shown to a person twice in a row within a batch."""
    scenes = {task.id: list_task_scenes(task) for task in tasks}
    orders: dict[tuple[str, int], list[tuple[int, str]]] = defaultdict(list)
    for each in assignments:
        orders[each.annotator, each.batch].append((each.position, each.task))
    return sum(
        not scenes[a].isdisjoint(scenes[b])
        for order in orders.values()
        for (_, a), (_, b) in itertools.pairwise(sorted(order))
    )


def _by_annotator(assignments: list[TaskAssignment]) -> dict[str, list[TaskAssignment]]:
    found: dict[str, list[TaskAssignment]] = defaultdict(list)
    for each in assignments:
        found[each.annotator].append(each)
    return found


@given(
    n_tasks=st.integers(0, 60),
    n_people=st.integers(1, 9),
    overlap=st.integers(1, 9),
    seed=st.integers(-(2**40), 2**40),
)
def test_each_task_has_its_people_and_each_person_the_same_load(
    n_tasks: int, n_people: int, overlap: int, seed: int
) -> None:
    overlap = min(overlap, n_people)
    tasks, names = tasks_of(n_tasks), NAMES[:n_people]
    dealt = assign_tasks_to_annotators(tasks, names, overlap=overlap, seed=seed, batch=1)
    people = {(each.annotator, each.task) for each in dealt}
    assert len(people) == len(dealt) == n_tasks * overlap
    assert Counter(task for _, task in people) == Counter({task.id: overlap for task in tasks})
    loads = [sum(each.annotator == name for each in dealt) for name in names]
    assert max(loads) - min(loads) <= 1
    for own in _by_annotator(dealt).values():
        assert [each.position for each in own] == list(range(len(own)))


@given(st.permutations(range(12)), st.permutations(range(4)))
def test_the_order_in_which_tasks_and_people_are_named_changes_nothing(
    tasks: list[int], people: list[int]
) -> None:
    some = tasks_of(12, groups=5)
    dealt = assign_tasks_to_annotators(some, NAMES[:4], overlap=2, seed=1, batch=1)
    again = assign_tasks_to_annotators(
        [some[n] for n in tasks], [NAMES[n] for n in people], overlap=2, seed=1, batch=1
    )
    assert dealt == again


def test_each_has_an_order_of_their_own_and_another_seed_another_order() -> None:
    tasks = tasks_of(40)
    one, two = (
        assign_tasks_to_annotators(tasks, NAMES[:3], overlap=3, seed=seed, batch=1)
        for seed in (1, 2)
    )
    orders = [
        tuple(each.task for each in own)
        for dealt in (one, two)
        for own in _by_annotator(dealt).values()
    ]
    assert len(set(orders)) == 6


def test_everybody_is_asked_together_with_everybody() -> None:
    """Six people in threes could be two rooms that never meet, which nobody could compare."""
    dealt = assign_tasks_to_annotators(tasks_of(100), NAMES[:6], overlap=3, seed=0, batch=1)
    people = defaultdict(set)
    for each in dealt:
        people[each.task].add(each.annotator)
    met = Counter(
        pair for who in people.values() for pair in itertools.combinations(sorted(who), 2)
    )
    assert len(met) == 15
    assert min(met.values()) >= 10


@given(st.lists(st.integers(0, 4), max_size=40), st.integers(0, 1000))
def test_no_scene_comes_twice_in_a_row_where_that_can_be_avoided(
    groups: list[int], seed: int
) -> None:
    tasks = [task_of(f"c{n:02}", group=f"g{g}" if g else "") for n, g in enumerate(groups)]
    dealt = assign_tasks_to_annotators(tasks, NAMES[:1], overlap=1, seed=seed, batch=1)
    most = max((n for group, n in Counter(groups).items() if group), default=0)
    assert count_neighbours(tasks, dealt) == max(0, most - (len(tasks) - most) - 1)


@given(st.integers(6, 12), st.integers(0, 1000))
def test_no_clip_of_a_pair_comes_twice_in_a_row(n_clips: int, seed: int) -> None:
    names = [f"c{n:02}" for n in range(n_clips)]
    pairs = [task_of(*pair) for pair in itertools.combinations(names, 2)]
    dealt = assign_tasks_to_annotators(pairs, NAMES[:3], overlap=3, seed=seed, batch=1)
    assert count_neighbours(pairs, dealt) == 0


@given(st.integers(1, 40), st.integers(1, 6), st.integers(1, 6), st.integers(0, 1000))
def test_pairs_are_shown_as_often_one_way_round_as_the_other(
    n_pairs: int, n_people: int, overlap: int, seed: int
) -> None:
    pairs = [task_of(f"a{n:02}", f"b{n:02}") for n in range(n_pairs)]
    overlap = min(overlap, n_people)
    dealt = assign_tasks_to_annotators(pairs, NAMES[:n_people], overlap=overlap, seed=seed, batch=1)
    for own in _by_annotator(dealt).values():
        assert abs(sum(1 if each.swapped else -1 for each in own)) <= 3
    for task in pairs:
        sides = [each.swapped for each in dealt if each.task == task.id]
        assert abs(sides.count(True) - sides.count(False)) <= 1


def _prefilled(n: int) -> list[AnnotationTask]:
    return [task_of(f"c{i:03}", prefill=FAKE) for i in range(n)]


@given(
    st.integers(1, 60),
    st.integers(1, 5),
    st.fractions(Fraction(1, 20), Fraction(19, 20)),
    st.integers(0, 1000),
)
def test_marks_are_shown_to_their_share_and_a_blind_arm_stays(
    n_tasks: int, overlap: int, share: Fraction, seed: int
) -> None:
    tasks = _prefilled(n_tasks)
    dealt = assign_tasks_to_annotators(
        tasks, NAMES[:5], overlap=overlap, seed=seed, batch=1, prefilled_share=float(share)
    )
    arms = Counter(each.arm for each in dealt)
    assert arms.keys() <= {PrefillStudyArm.PREFILLED, PrefillStudyArm.BLIND}
    assert arms[PrefillStudyArm.BLIND] >= 1
    assert abs(arms[PrefillStudyArm.PREFILLED] - len(dealt) * share) <= 1 + len(dealt) / 1000
    for task in tasks:
        shown = [each.arm for each in dealt if each.task == task.id].count(
            PrefillStudyArm.PREFILLED
        )
        assert abs(shown - overlap * share) < 1 + overlap / 1000


def test_marks_are_shown_only_where_asked_and_only_where_there_are_any() -> None:
    plain = assign_tasks_to_annotators(_prefilled(9), NAMES[:3], overlap=3, seed=0, batch=1)
    assert {each.arm for each in plain} == {PrefillStudyArm.PLAIN}
    mixed = [*_prefilled(9), bare := task_of("bare")]
    dealt = assign_tasks_to_annotators(
        mixed, NAMES[:3], overlap=3, seed=0, batch=1, prefilled_share=0.5
    )
    assert {each.arm for each in dealt if each.task == bare.id} == {PrefillStudyArm.PLAIN}


def test_everybody_judges_gold() -> None:
    tasks = tasks_of(30)
    gold = {tasks[3].id, tasks[4].id}
    dealt = assign_tasks_to_annotators(tasks, NAMES, overlap=2, seed=0, batch=1, gold=gold)
    n_people = Counter(each.task for each in dealt)
    assert {task for task, n in n_people.items() if n == len(NAMES)} == gold
    assert sum(n_people.values()) == 28 * 2 + 2 * 20
    loads = Counter(each.annotator for each in dealt).values()
    assert max(loads) - min(loads) <= 1
    with pytest.raises(UnknownNameError, match="batch"):
        assign_tasks_to_annotators(tasks, NAMES, overlap=2, seed=0, batch=1, gold=["none"])


@pytest.mark.parametrize(("names", "overlap"), [((), 1), (NAMES[:2], 3), (NAMES, 0)])
def test_too_few_people_are_refused(names: tuple[str, ...], overlap: int) -> None:
    with pytest.raises(InvalidSettingError, match="Ask more people"):
        assign_tasks_to_annotators(tasks_of(3), names, overlap=overlap, seed=0, batch=1)


def test_a_later_batch_changes_nothing_of_an_earlier_one() -> None:
    first = assign_tasks_to_annotators(tasks_of(20), NAMES[:4], overlap=2, seed=5, batch=1)
    more = [task_of(f"d{n}") for n in range(20)]
    assign_tasks_to_annotators(more, NAMES[:6], overlap=3, seed=5, batch=2)
    assert assign_tasks_to_annotators(tasks_of(20), NAMES[:4], overlap=2, seed=5, batch=1) == first


@pytest.mark.volume
@pytest.mark.parametrize("groups", [0, 1000, 1])
def test_ten_thousand_tasks_are_dealt_to_twenty_people_within_two_seconds(groups: int) -> None:
    tasks = tasks_of(10_000, groups=groups)
    before_s = time.process_time()
    dealt = assign_tasks_to_annotators(tasks, NAMES, overlap=3, seed=0, batch=1)
    assert time.process_time() - before_s < 2 * slowness()
    assert len(dealt) == 30_000
