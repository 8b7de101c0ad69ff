"""Order of an annotator's tasks without the same scene or clip twice in a row.

Annotators would compare two consecutive clips of one source instead of judging each separately.
"""

import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from unreel.annotation.campaign import AnnotationTask

_DRAWS: Final = 30
"""With half of what is left in the way, one in 2**30 orders looks at all that is left once."""
_PLACES: Final = 500
"""Places that are tried for a task that fits nowhere behind the others."""

_ORDERS: Final = 20
"""More orders that are tried for pairs whose first one has neighbours."""
_FEW: Final = 2000
"""Tasks up to which that is worth the time: more of them have room enough."""


def list_task_scenes(task: AnnotationTask) -> frozenset[str]:
    """Return the scenes and clips of a task that must not be shown twice in a row."""
    clips = (copy.clip for copy in task.copies)
    return frozenset((*clips, f"group {task.group}") if task.group else clips)


def order_tasks(scenes: Mapping[str, frozenset[str]], chance: Random) -> list[str]:
    """Return the tasks, by id with their scenes, in a random order without neighbours of one scene.

    Where each task has one scene that others have too, an order without neighbours is found if there is
    one, else one with the fewest.
    """
    n_of = Counter(itertools.chain.from_iterable(scenes.values()))
    alone = {scene for scene, n in n_of.items() if n == 1}
    shared = {task: found - alone for task, found in scenes.items()}
    best = _draw_task_order(shared, chance)
    # Of one scene a task the first order is the best. Pairs of few clips may run into a dead end.
    n_more = _ORDERS if any(len(found) > 1 for found in shared.values()) else 0
    for _ in range(n_more if len(shared) <= _FEW else 0):
        if not (fewest := _count_scene_neighbours(best, shared)):
            break
        other = _draw_task_order(shared, chance)
        best = other if _count_scene_neighbours(other, shared) < fewest else best
    return best


def _count_scene_neighbours(order: Sequence[str], scenes: Mapping[str, frozenset[str]]) -> int:
    return sum(not scenes[a].isdisjoint(scenes[b]) for a, b in itertools.pairwise(order))


def _draw_task_order(scenes: Mapping[str, frozenset[str]], chance: Random) -> list[str]:
    left = _UnplacedTasks.of(scenes, chance)
    order: list[str] = []
    last: frozenset[str] = frozenset()
    while (task := left.draw(last)) is not None:
        order.append(task)
        last = scenes[task]
    return _insert_remaining_tasks(order, left.rest(), scenes, chance)


@dataclass(slots=True, kw_only=True)
class _UnplacedTasks:
    """Tasks that have no place yet."""

    scenes: Mapping[str, frozenset[str]]
    chance: Random
    tasks: list[str]
    """Some of which may have a place already: they are thrown out when they are drawn."""
    waiting: set[str]
    n_of: Counter[str]
    of_scene: Mapping[str, list[str]]
    largest: list[tuple[int, str]] = field(default_factory=list)
    """A heap of scenes by how many tasks have them, with old counts among them."""

    @classmethod
    def of(cls, scenes: Mapping[str, frozenset[str]], chance: Random) -> "_UnplacedTasks":
        tasks = sorted(scenes)
        chance.shuffle(tasks)
        of_scene: dict[str, list[str]] = defaultdict(list)
        for task in tasks:
            for scene in sorted(scenes[task]):
                of_scene[scene].append(task)
        n_of = Counter({scene: len(found) for scene, found in of_scene.items()})
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
        """Draw a task to follow the scenes `last`; `None` if every remaining task shares a scene with them."""
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
        """Return all remaining tasks in random order."""
        rest = sorted(self.waiting)
        self.chance.shuffle(rest)
        return rest

    def _pressing(self) -> str | None:
        """Return the scene of more than half of the remaining tasks; `None` if there is no such scene.

        If such a scene is not placed next, two of its tasks become neighbours.
        """
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
            place = self.chance.randrange(len(self.tasks))
            task = self.tasks[place]
            if task not in self.waiting:
                self.tasks[place] = self.tasks[-1]
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
    """Insert each task of `rest` between tasks of other scenes; append it if no position is found."""
    hopeless: set[frozenset[str]] = set()
    nothing: frozenset[str] = frozenset()
    for task in rest:
        given = scenes[task]
        n_tried = 0 if given in hopeless else min(len(order) + 1, _PLACES)
        for place in chance.sample(range(len(order) + 1), n_tried):
            before = scenes[order[place - 1]] if place else nothing
            behind = scenes[order[place]] if place < len(order) else nothing
            if given.isdisjoint(before) and given.isdisjoint(behind):
                order.insert(place, task)
                break
        else:
            hopeless.add(given)
            order.append(task)
    return order
