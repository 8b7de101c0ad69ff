"""Assignment of tasks to annotators: tasks per annotator, and the order for each annotator."""

import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Final

from unreel.annotation.campaign import AnnotationTask, PrefillStudyArm, TaskAssignment
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError, UnknownNameError

_DRAWS: Final = 30
"""Maximum number of tries before a scan of all tasks; if half of the tasks fit, 1 draw in 2**30 needs a scan."""
_PLACES: Final = 500
"""Maximum number of random positions that are tried to insert a task that could not be drawn."""

_ORDERS: Final = 20
"""Number of additional random orders that are tried for pairs if the best order still has repeated scenes."""
_FEW: Final = 2000
"""Maximum number of tasks for which additional orders are tried; larger sets rarely need them."""


def list_task_scenes(task: AnnotationTask) -> frozenset[str]:
    """Return the clips and the scene of a task, which the next task of an annotator must not repeat."""
    clips = (copy.clip for copy in task.copies)
    return frozenset((*clips, f"group {task.group}") if task.group else clips)


def shuffle_tasks_apart_by_scene(scenes: Mapping[str, frozenset[str]], chance: Random) -> list[str]:
    """Return the task ids in a random order in which adjacent tasks share no scene, if possible.

    If each task has at most one scene in common with other tasks, the number of adjacent tasks with
    the same scene is minimal. Otherwise several random orders are tried, and the best one is used.

    Args:
        scenes: Scenes and clips of each task, by task id.
        chance: Random generator.
    """
    n_of = Counter(itertools.chain.from_iterable(scenes.values()))
    alone = {scene for scene, n in n_of.items() if n == 1}
    shared = {task: found - alone for task, found in scenes.items()}
    best = _sample_task_order(shared, chance)
    # With one scene per task the first order is optimal. Pairs of few clips may reach a dead end.
    n_more = _ORDERS if any(len(found) > 1 for found in shared.values()) else 0
    for _ in range(n_more if len(shared) <= _FEW else 0):
        if not (fewest := _count_adjacent_scene_repeats(best, shared)):
            break
        order = _sample_task_order(shared, chance)
        best = order if _count_adjacent_scene_repeats(order, shared) < fewest else best
    return best


def _count_adjacent_scene_repeats(
    order: Sequence[str], scenes: Mapping[str, frozenset[str]]
) -> int:
    return sum(not scenes[a].isdisjoint(scenes[b]) for a, b in itertools.pairwise(order))


def _sample_task_order(scenes: Mapping[str, frozenset[str]], chance: Random) -> list[str]:
    left = _UnorderedTasks.of(scenes, chance)
    order: list[str] = []
    last: frozenset[str] = frozenset()
    while (task := left.draw(last)) is not None:
        order.append(task)
        last = scenes[task]
    return _insert_remaining_tasks(order, left.rest(), scenes, chance)


@dataclass(slots=True, kw_only=True)
class _UnorderedTasks:
    """Tasks that have no position in an annotator's order yet, with the number of tasks per scene."""

    scenes: Mapping[str, frozenset[str]]
    chance: Random
    tasks: list[str]
    """Tasks to draw from; those that already have a position are removed when they are drawn."""
    waiting: set[str]
    n_of: Counter[str]
    of_scene: Mapping[str, list[str]]
    largest: list[tuple[int, str]] = field(default_factory=list)
    """Heap of scenes by their number of waiting tasks, largest first; also contains outdated counts."""

    @classmethod
    def of(cls, scenes: Mapping[str, frozenset[str]], chance: Random) -> "_UnorderedTasks":
        tasks = sorted(scenes)
        chance.shuffle(tasks)
        of_scene: dict[str, list[str]] = defaultdict(list)
        for task in tasks:
            for scene in sorted(scenes[task]):
                of_scene[scene].append(task)
        n_of = Counter({scene: len(ids) for scene, ids in of_scene.items()})
        largest = [(-n, scene) for scene, n in n_of.items()]
        heapq.heapify(largest)
        return cls(
            scenes=scenes,
            chance=chance,
            tasks=tasks,
            waiting=set(tasks),
            n_of=n_of,
            of_scene=of_scene,
            largest=largest,
        )

    def draw(self, last: frozenset[str]) -> str | None:
        """Remove a random task without a scene in `last`, a majority scene first; `None` if none."""
        scene = self._pressing()
        task = None if scene is None or scene in last else self._first_of(scene, last)
        task = task or self._by_chance(last)
        if task is not None:
            self.waiting.remove(task)
            for scene in self.scenes[task]:
                self.n_of[scene] -= 1
                heapq.heappush(self.largest, (-self.n_of[scene], scene))
        return task

    def rest(self) -> list[str]:
        """Return all tasks that were not drawn yet, in random order."""
        rest = sorted(self.waiting)
        self.chance.shuffle(rest)
        return rest

    def _pressing(self) -> str | None:
        """Return the scene of more than half of the tasks, which must come next to be spread; else `None`."""
        while self.largest and -self.largest[0][0] != self.n_of[self.largest[0][1]]:
            heapq.heappop(self.largest)
        if self.largest and -self.largest[0][0] > len(self.waiting) // 2:
            return self.largest[0][1]
        return None

    def _first_of(self, scene: str, last: frozenset[str]) -> str | None:
        tasks = self.of_scene[scene]
        while tasks and tasks[-1] not in self.waiting:
            tasks.pop()
        for task in reversed(tasks[-_DRAWS:]):
            if task in self.waiting and self.scenes[task].isdisjoint(last):
                return task
        return None

    def _by_chance(self, last: frozenset[str]) -> str | None:
        draws = 0
        while self.tasks and draws < _DRAWS:
            i = self.chance.randrange(len(self.tasks))
            task = self.tasks[i]
            if task not in self.waiting:
                self.tasks[i] = self.tasks[-1]
                self.tasks.pop()
                continue
            if self.scenes[task].isdisjoint(last):
                return task
            draws += 1
        fitting = (task for task in self.rest() if self.scenes[task].isdisjoint(last))
        return next(fitting, None)


def _insert_remaining_tasks(
    order: list[str], rest: Sequence[str], scenes: Mapping[str, frozenset[str]], chance: Random
) -> list[str]:
    """Insert each task of `rest` between two tasks of other scenes; append it if no position is found."""
    hopeless: set[frozenset[str]] = set()
    nothing: frozenset[str] = frozenset()
    for task in rest:
        own = scenes[task]
        n_tried = 0 if own in hopeless else min(len(order) + 1, _PLACES)
        for i in chance.sample(range(len(order) + 1), n_tried):
            before = scenes[order[i - 1]] if i else nothing
            behind = scenes[order[i]] if i < len(order) else nothing
            if own.isdisjoint(before) and own.isdisjoint(behind):
                order.insert(i, task)
                break
        else:
            hopeless.add(own)
            order.append(task)
    return order


_PAIR: Final = 2
_FINEST: Final = 1000
"""Denominator to which the prefilled fraction is rounded."""


def assign_tasks_to_annotators(  # noqa: PLR0913  the knobs of a campaign
    tasks: Iterable[AnnotationTask],
    annotators: Sequence[str],
    *,
    overlap: int,
    seed: int,
    batch: int,
    prefilled_share: float | None = None,
    gold: Collection[str] = (),
) -> list[TaskAssignment]:
    """Assign each task to `overlap` annotators, and order the tasks of each annotator.

    The numbers of tasks of two annotators differ by at most one. The annotators of a task vary, so
    that all annotators can be compared with each other. Both orders of a pair occur equally often.

    Args:
        tasks: Tasks of this batch, in any order.
        annotators: Names of the annotators.
        overlap: Number of annotators per task.
        seed: Seed of the campaign.
        batch: Number of the batch, from 1.
        prefilled_share: Fraction of the tasks with earlier annotations that show them; None shows
            none. The rest is the blind arm.
        gold: Ids of tasks that all annotators judge.

    Raises:
        InvalidSettingError: There are too few annotators, or the fraction leaves no blind arm.
        UnknownNameError: `gold` names a task that is not in the batch.
    """
    by_id = {task.id: task for task in tasks}
    share = _validate_assignment_settings(by_id, annotators, overlap, prefilled_share, gold)
    shuffled = _build_random_generator(seed, batch, "tasks")
    order = sorted(by_id)
    shuffled.shuffle(order)
    dealt = _assign_annotators(order, sorted(annotators), overlap, shuffled, gold=frozenset(gold))
    sides = _select_swapped_assignments(dealt, by_id, _build_random_generator(seed, batch, "sides"))
    arms = _assign_study_arms(dealt, by_id, share, _build_random_generator(seed, batch, "arms"))
    scenes = {id_: list_task_scenes(task) for id_, task in by_id.items()}
    task_lists: dict[str, list[str]] = {name: [] for name in sorted(annotators)}
    for task, people in dealt.items():
        for name in people:
            task_lists[name].append(task)
    return [
        TaskAssignment(
            annotator=name,
            task=task,
            batch=batch,
            position=position,
            arm=arms.get((name, task), PrefillStudyArm.PLAIN),
            swapped=(name, task) in sides,
        )
        for name, mine in task_lists.items()
        for position, task in enumerate(
            shuffle_tasks_apart_by_scene(
                {task: scenes[task] for task in mine},
                _build_random_generator(seed, batch, "order", name),
            )
        )
    ]


def _validate_assignment_settings(
    by_id: dict[str, AnnotationTask],
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
        if id_ not in by_id:
            kind = "task of this batch"
            raise UnknownNameError(kind, id_, sorted(by_id)[:5])
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
    """Assign `overlap` annotators (all for tasks in `gold`) from a shuffled list, reshuffled when empty."""
    deck: list[str] = []
    assigned: dict[str, list[str]] = {}
    for task in order:
        if task in gold:
            assigned[task] = list(annotators)
            continue
        chosen = [deck.pop() for _ in range(min(overlap, len(deck)))]
        if len(chosen) < overlap:
            fresh = list(annotators)
            chance.shuffle(fresh)
            free = [name for name in fresh if name not in chosen]
            n_more = overlap - len(chosen)
            deck = [name for name in fresh if name in chosen] + free[n_more:]
            chance.shuffle(deck)
            chosen += free[:n_more]
        assigned[task] = chosen
    return assigned


def _select_swapped_assignments(
    assigned: dict[str, list[str]], by_id: dict[str, AnnotationTask], chance: Random
) -> set[tuple[str, str]]:
    """Select (annotator, task) pairs shown swapped: about half of each task's and of each annotator's."""
    leaning: Counter[str] = Counter()
    swapped: set[tuple[str, str]] = set()
    for task, people in assigned.items():
        if len(by_id[task].names) < _PAIR:
            continue
        ranked = sorted(people, key=lambda name: (-leaning[name], chance.random()))
        half, odd = divmod(len(ranked), 2)
        if odd and (leaning[ranked[half]] or chance.choice((-1, 1))) > 0:
            half += 1
        for i, name in enumerate(ranked):
            leaning[name] += 1 if i >= half else -1
        swapped |= {(name, task) for name in ranked[:half]}
    return swapped


def _assign_study_arms(
    assigned: dict[str, list[str]],
    by_id: dict[str, AnnotationTask],
    share: Fraction | None,
    chance: Random,
) -> dict[tuple[str, str], PrefillStudyArm]:
    """Return, by (annotator, task), whether the annotator sees the earlier annotations of the task.

    Only tasks with earlier annotations have a study arm. The fraction `share` of the assignments is
    prefilled: overall, and as nearly as possible for each annotator.
    """
    arms: dict[tuple[str, str], PrefillStudyArm] = {}
    if share is None:
        return arms
    owed: Counter[str] = Counter()
    n_seen = n_shown = 0
    for task, people in assigned.items():
        if by_id[task].prefill is None:
            continue
        n_seen += len(people)
        n_now = int(n_seen * share) - n_shown  # rounded down, so that some stay blind
        n_shown += n_now
        ranked = sorted(people, key=lambda name: (-owed[name], chance.random()))
        for i, name in enumerate(ranked):
            is_shown = i < n_now
            arms[name, task] = PrefillStudyArm.PREFILLED if is_shown else PrefillStudyArm.BLIND
            owed[name] += share.numerator - share.denominator * is_shown
    return arms
