"""Assignment of tasks to annotators: the requested number per task, equal loads, and a separate order for each person.

The result depends only on the seed, the batch, the names and the tasks, so that an interrupted push
makes the same assignments again. A later batch is assigned independently and does not change an
earlier one.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction
from random import Random
from typing import Final

from unreel.annotation.campaign import AnnotationTask, StudyArm, TaskAssignment
from unreel.annotation.task_order import list_task_scenes, order_tasks
from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.core.identity import digest

_PAIR: Final = 2
_FINEST: Final = 1000
"""Shares are taken in thousandths."""


def assign(  # noqa: PLR0913  the knobs of a campaign
    tasks: Iterable[AnnotationTask],
    annotators: Sequence[str],
    *,
    overlap: int,
    seed: int,
    batch: int,
    prefilled_share: float | None = None,
    gold: Collection[str] = (),
) -> list[TaskAssignment]:
    """Assign `tasks` so that `overlap` people judge each of them.

    Loads differ by at most one, and the groups of annotators vary over tasks, so that all of them
    can be compared. Both orders of pairs occur equally often.

    Args:
        tasks: Tasks of this batch, in any order.
        annotators: Names of the annotators.
        overlap: Number of annotators per task.
        seed: Seed of the campaign.
        batch: Number of the batch, from 1.
        prefilled_share: Fraction of the tasks with earlier annotations that show them; None shows
            none. The rest is the blind arm.
        gold: Ids of tasks for all annotators.

    Raises:
        InvalidSettingError: There are too few annotators, or the fraction leaves no blind arm.
        UnknownNameError: `gold` names a task that is not in the batch.
    """
    given = {task.id: task for task in tasks}
    share = _validate_assignment_settings(given, annotators, overlap, prefilled_share, gold)
    shuffled = _build_random_generator(seed, batch, "tasks")
    order = sorted(given)
    shuffled.shuffle(order)
    dealt = _assign_annotators(order, sorted(annotators), overlap, shuffled, gold=frozenset(gold))
    sides = _select_swapped_pairs(dealt, given, _build_random_generator(seed, batch, "sides"))
    arms = _assign_study_arms(dealt, given, share, _build_random_generator(seed, batch, "arms"))
    scenes = {id_: list_task_scenes(task) for id_, task in given.items()}
    own: dict[str, list[str]] = {name: [] for name in sorted(annotators)}
    for task, people in dealt.items():
        for name in people:
            own[name].append(task)
    return [
        TaskAssignment(
            annotator=name,
            task=task,
            batch=batch,
            position=position,
            arm=arms.get((name, task), StudyArm.PLAIN),
            swapped=(name, task) in sides,
        )
        for name, mine in own.items()
        for position, task in enumerate(
            order_tasks(
                {task: scenes[task] for task in mine},
                _build_random_generator(seed, batch, "order", name),
            )
        )
    ]


def _validate_assignment_settings(
    given: dict[str, AnnotationTask],
    annotators: Sequence[str],
    overlap: int,
    share: float | None,
    gold: Collection[str],
) -> Fraction | None:
    if len(set(annotators)) != len(annotators):
        setting, problem = "annotators", "an annotator is named twice"
        raise InvalidSettingError(setting, problem, "Name each person once")
    if not 1 <= overlap <= len(annotators):
        setting = "overlap"
        problem = f"{overlap} different people cannot judge each task, {len(annotators)} are asked"
        raise InvalidSettingError(setting, problem, "Ask more people, or take a smaller overlap")
    for id_ in gold:
        if id_ not in given:
            kind = "task of this batch"
            raise UnknownNameError(kind, id_, sorted(given)[:5])
    if share is None:
        return None
    exact = Fraction(round(share * _FINEST), _FINEST) if 0 < share < 1 else Fraction(0)
    if not 0 < exact < 1:
        setting, problem = "prefilled share", f"{share} leaves one of the two arms empty"
        remedy = "Give more than 0 and less than 1: without a blind arm the bias of prefilled annotations cannot be measured"
        raise InvalidSettingError(setting, problem, remedy)
    return exact


def _build_random_generator(seed: int, batch: int, *of: str) -> Random:
    text = digest("assign", str(seed), str(batch), *of)
    return Random(text)  # noqa: S311  a choice that can be repeated, no secret


def _assign_annotators(
    order: Sequence[str],
    annotators: Sequence[str],
    overlap: int,
    chance: Random,
    *,
    gold: Collection[str],
) -> dict[str, list[str]]:
    """Assign annotators to each task in random order; the pool is reshuffled when it is empty."""
    deck: list[str] = []
    dealt: dict[str, list[str]] = {}
    for task in order:
        if task in gold:
            dealt[task] = list(annotators)
            continue
        hand = [deck.pop() for _ in range(min(overlap, len(deck)))]
        if len(hand) < overlap:
            fresh = list(annotators)
            chance.shuffle(fresh)
            free = [name for name in fresh if name not in hand]
            n_more = overlap - len(hand)
            deck = [name for name in fresh if name in hand] + free[n_more:]
            chance.shuffle(deck)
            hand += free[:n_more]
        dealt[task] = hand
    return dealt


def _select_swapped_pairs(
    dealt: dict[str, list[str]], given: dict[str, AnnotationTask], chance: Random
) -> set[tuple[str, str]]:
    """Return who sees which pair swapped: half of a task's people, and half of a person's pairs."""
    leaning: Counter[str] = Counter()
    swapped: set[tuple[str, str]] = set()
    for task, people in dealt.items():
        if len(given[task].names) < _PAIR:
            continue
        ranked = sorted(people, key=lambda name: (-leaning[name], chance.random()))
        half, odd = divmod(len(ranked), 2)
        if odd and (leaning[ranked[half]] or chance.choice((-1, 1))) > 0:
            half += 1
        for place, name in enumerate(ranked):
            leaning[name] += 1 if place >= half else -1
        swapped |= {(name, task) for name in ranked[:half]}
    return swapped


def _assign_study_arms(
    dealt: dict[str, list[str]],
    given: dict[str, AnnotationTask],
    share: Fraction | None,
    chance: Random,
) -> dict[tuple[str, str], StudyArm]:
    """Return who sees earlier annotations: that fraction overall, and of each person's tasks as nearly as possible."""
    arms: dict[tuple[str, str], StudyArm] = {}
    if share is None:
        return arms
    owed: Counter[str] = Counter()
    n_seen = n_shown = 0
    for task, people in dealt.items():
        if given[task].prefill is None:
            continue
        n_seen += len(people)
        n_now = int(n_seen * share) - n_shown  # rounded down, so that somebody is always blind
        n_shown += n_now
        ranked = sorted(people, key=lambda name: (-owed[name], chance.random()))
        for place, name in enumerate(ranked):
            is_shown = place < n_now
            arms[name, task] = StudyArm.PREFILLED if is_shown else StudyArm.BLIND
            owed[name] += share.numerator - share.denominator * is_shown
    return arms
