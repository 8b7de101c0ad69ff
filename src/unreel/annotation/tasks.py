"""Tasks of a campaign, from clips of a benchmark or a queue of segments; their assignment to annotators."""

import heapq
import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random

from unreel.annotation.browser_copies import ClipCopyRequest
from unreel.annotation.campaign import (
    VALUES,
    AnnotationInterface,
    AnnotationTask,
    AnnotatorClipCopy,
    PreferenceAnswer,
    PrefillStudyArm,
    RatingAnswer,
    TaskAssignment,
    TraceAnswer,
    Value,
    VoteAnswer,
)
from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.loader import open_benchmark
from unreel.benchmarks.tables import read_table_rows
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError, UnknownNameError, UnreadableSourceError
from unreel.core.verdict import Position

QUEUE = "queue.jsonl"
"""File name of the queue of segments to screen, which `unreel curate` writes."""
MAX_PAIRS = 100_000
_PAIR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskClip:
    """Clip for annotation: file, scene and entry in the benchmark."""

    wanted: ClipCopyRequest
    group: str = ""
    entry: Entry | None = None
    """Entry in the benchmark; `None` for a segment of a queue, which has no ground truth."""


def read_task_clips(
    path: Path, *, interface: AnnotationInterface, refused: Callable[[Rejected], None]
) -> list[TaskClip]:
    """Read the clips of the benchmark or segment queue at `path`; call `refused` for invalid rows."""
    queue = path / QUEUE if interface is AnnotationInterface.SCREENING and path.is_dir() else path
    if queue.name == QUEUE and queue.is_file():
        clips = list(_read_segment_queue(queue, refused))
    else:
        benchmark = open_benchmark(path)
        clips = []
        for row in benchmark:
            if isinstance(row, Rejected):
                refused(row)
                continue
            request = ClipCopyRequest(row.name, benchmark.find(row))
            clips.append(TaskClip(wanted=request, group=row.group, entry=row))
    if not clips:
        raise InvalidSettingError(
            "BENCH", f"{path} names no clip", "Name a benchmark or a queue that has some"
        )
    return clips


def build_annotation_tasks(
    clips: Iterable[TaskClip],
    copies: Mapping[str, AnnotatorClipCopy],
    *,
    interface: AnnotationInterface,
    prefill: Mapping[str, Value],
    pairs: Sequence[tuple[str, str]] = (),
) -> list[AnnotationTask]:
    """Build a task without known answers for each copied clip or pair; only `pairs` (sorted names) if given."""
    copied = sorted((s for s in clips if s.wanted.name in copies), key=lambda s: s.wanted.name)
    sets: Iterable[tuple[TaskClip, ...]] = ((subject,) for subject in copied)
    if interface.n_clips == _PAIR:
        n_pairs = len(pairs) or len(copied) * (len(copied) - 1) // 2
        if n_pairs > MAX_PAIRS:
            raise InvalidSettingError(
                "BENCH",
                f"{len(copied)} clips make {n_pairs:,} pairs",
                "Choose some with `unreel annotate pairs`, and give them as --pairs",
            )
        sets = itertools.combinations(copied, _PAIR)
        if pairs:
            by_name = {clip.wanted.name: clip for clip in copied}
            # Clips that could not be copied are already reported.
            usable = (pair for pair in pairs if by_name.keys() >= set(pair))
            sets = [tuple(by_name[name] for name in pair) for pair in usable]
    return [
        AnnotationTask(
            names=tuple(subject.wanted.name for subject in those),
            copies=tuple(copies[subject.wanted.name] for subject in those),
            group=those[0].group if len(those) == 1 else "",
            prefill=prefill.get("+".join(subject.wanted.name for subject in those)),
        )
        for those in sets
    ]


def select_clips_of_pairs(
    clips: Sequence[TaskClip], pairs: Sequence[tuple[str, str]]
) -> list[TaskClip]:
    """Return the clips in `pairs`, or all if empty; raise `InvalidSettingError` for an unknown clip."""
    named = {name for pair in pairs for name in pair}
    if unknown := sorted(named - {subject.wanted.name for subject in clips}):
        raise InvalidSettingError(
            "--pairs", f"BENCH has no clip {unknown[0]!a}", "Choose pairs of this benchmark's clips"
        )
    return [s for s in clips if not named or s.wanted.name in named]


def select_known_answers(
    tasks: Iterable[AnnotationTask],
    clips: Iterable[TaskClip],
    *,
    interface: AnnotationInterface,
    n: int,
    seed: int,
) -> dict[str, Value]:
    """Choose `n` tasks at random by `seed`, and return their ground-truth answers by task id."""
    entries = {subject.wanted.name: subject.entry for subject in clips}
    answers = {}
    for task in tasks:
        about = [entries.get(name) for name in task.names]
        value = _find_known_answer(interface, [entry for entry in about if entry is not None])
        if value is not None and None not in about:
            answers[task.id] = value
    if len(answers) < n:
        raise InvalidSettingError(
            "--gold",
            f"the benchmark has the answer of {len(answers)} tasks",
            f"Give {len(answers)} at most",
        )
    chosen = Random(f"gold {seed}").sample(sorted(answers), n)  # noqa: S311  no secret
    return {task: answers[task] for task in chosen}


def read_prefilled_answers(file: Path) -> dict[str, Value]:
    """Read prefilled answers: JSONL with `name` (`a+b` for a pair) and `value`."""
    answers: dict[str, Value] = {}
    for number, row in enumerate(read_table_rows(file), start=1):
        try:
            if isinstance(row, Rejected):
                raise ValueError(row.why)  # noqa: TRY004  told below, with its line
            raw = row["value"]
            value = json.loads(raw) if isinstance(raw, str) else raw
            answers[str(row["name"])] = VALUES.validate_python(value)
        except (ValueError, KeyError) as error:
            raise UnreadableSourceError(
                str(file),
                f"line {number} has no name and value ({type(error).__name__})",
                'Write {"name": "clip", "value": {"kind": "voted", "label": "real"}}',
            ) from error
    return answers


def _find_known_answer(interface: AnnotationInterface, entries: list[Entry]) -> Value | None:
    """Return the right answer to a task by the benchmark's ground truth; `None` if it has none."""
    if not entries:
        return None
    entry = entries[0]
    match interface:
        case AnnotationInterface.TRACE | AnnotationInterface.LOCATE:
            return TraceAnswer(traces=entry.traces, label=entry.label)
        case AnnotationInterface.REALITY:
            return VoteAnswer(label=entry.label)
        case AnnotationInterface.REALISM if entry.rating is not None:
            return RatingAnswer(rating=entry.rating)
        case AnnotationInterface.PREFERENCE:
            scores = [entry.rating.score for entry in entries if entry.rating is not None]
            if len(scores) == _PAIR and scores[0] != scores[1]:
                better = Position.FIRST if scores[0] > scores[1] else Position.SECOND
                return PreferenceAnswer(better=better)
        case _:
            pass
    return None


def _read_segment_queue(file: Path, refused: Callable[[Rejected], None]) -> Iterator[TaskClip]:
    for row in read_table_rows(file):
        if isinstance(row, Rejected):
            refused(row)
            continue
        try:
            piece, location = str(row["piece"]), str(row["location"])
            start_s, length_s = Fraction(str(row["start_s"])), Fraction(str(row["length_s"]))
        except (KeyError, ValueError, ZeroDivisionError):
            refused(
                Rejected(
                    str(row.get("piece", "a line")), "the line needs a piece, a location and a span"
                )
            )
            continue
        request = ClipCopyRequest(piece, location, start_s=start_s, length_s=length_s)
        yield TaskClip(wanted=request, group=str(row.get("name", "")))


_DRAWS = 30
"""Maximum number of tries before a scan of all tasks; if half of the tasks fit, 1 draw in 2**30 needs a scan."""
_PLACES = 500
"""Maximum number of random positions that are tried to insert a task that could not be drawn."""

_ORDERS = 20
"""Number of additional random orders that are tried for pairs if the best order still has repeated scenes."""
_FEW = 2000
"""Maximum number of tasks for which additional orders are tried; larger sets rarely need them."""


def list_task_scenes(task: AnnotationTask) -> frozenset[str]:
    """Return the clips and the scene of a task, which the next task of an annotator must not repeat."""
    clips = (copy.clip for copy in task.copies)
    return frozenset((*clips, f"group {task.group}") if task.group else clips)


def shuffle_tasks_by_scene(scenes: Mapping[str, frozenset[str]], chance: Random) -> list[str]:
    """Return the task ids in a random order in which adjacent tasks share no scene, if possible.

    If each task has at most one scene in common with other tasks, the number of adjacent tasks with
    the same scene is minimal. Otherwise several random orders are tried, and the best one is used.
    """
    n_of = Counter(itertools.chain.from_iterable(scenes.values()))
    alone = {scene for scene, n in n_of.items() if n == 1}
    shared = {task: found - alone for task, found in scenes.items()}

    def count_repeats(order: Sequence[str]) -> int:
        return sum(not shared[a].isdisjoint(shared[b]) for a, b in itertools.pairwise(order))

    best = _sample_task_order(shared, chance)
    # With one scene per task the first order is optimal. Pairs of few clips may reach a dead end.
    n_more = _ORDERS if any(len(found) > 1 for found in shared.values()) else 0
    for _ in range(n_more if len(shared) <= _FEW else 0):
        if not (fewest := count_repeats(best)):
            break
        order = _sample_task_order(shared, chance)
        best = order if count_repeats(order) < fewest else best
    return best


def _sample_task_order(scenes: Mapping[str, frozenset[str]], chance: Random) -> list[str]:
    left = _UnorderedTasks(scenes, chance)
    order: list[str] = []
    nothing: frozenset[str] = frozenset()
    last = nothing
    while (task := left.draw(last)) is not None:
        order.append(task)
        last = scenes[task]
    # Each remaining task is inserted between two tasks of other scenes, or appended without a position.
    hopeless: set[frozenset[str]] = set()
    for task in left.rest():
        own = scenes[task]
        n_tried = 0 if own in hopeless else min(len(order) + 1, _PLACES)
        for i in chance.sample(range(len(order) + 1), n_tried):
            before = scenes[order[i - 1]] if i else nothing
            after = scenes[order[i]] if i < len(order) else nothing
            if own.isdisjoint(before) and own.isdisjoint(after):
                order.insert(i, task)
                break
        else:
            hopeless.add(own)
            order.append(task)
    return order


class _UnorderedTasks:
    """Tasks that have no position in an annotator's order yet, with the number of tasks per scene."""

    def __init__(self, scenes: Mapping[str, frozenset[str]], chance: Random) -> None:
        self.scenes, self.chance = scenes, chance
        # Those that already have a position are removed when they are drawn.
        self.tasks = sorted(scenes)
        chance.shuffle(self.tasks)
        self.waiting = set(self.tasks)
        self.of_scene: dict[str, list[str]] = defaultdict(list)
        for task in self.tasks:
            for scene in sorted(scenes[task]):
                self.of_scene[scene].append(task)
        self.n_of = Counter({scene: len(ids) for scene, ids in self.of_scene.items()})
        # Heap of scenes by their number of waiting tasks; it also contains outdated counts.
        self.largest = [(-n, scene) for scene, n in self.n_of.items()]
        heapq.heapify(self.largest)

    def draw(self, last: frozenset[str]) -> str | None:
        """Remove a random task without a scene in `last`, a majority scene first; `None` if none."""
        while self.largest and -self.largest[0][0] != self.n_of[self.largest[0][1]]:
            heapq.heappop(self.largest)
        task = None
        if self.largest and -self.largest[0][0] > len(self.waiting) // 2:
            # The scene of more than half of the tasks must come next, to be spread.
            scene = self.largest[0][1]
            task = None if scene in last else self._first_of(scene, last)
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


_FINEST = 1000
"""Denominator to which the prefilled fraction is rounded."""


def assign_tasks_to_annotators(
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
    `prefilled_share` of the tasks with earlier annotations show them, the rest is the blind arm;
    with `None`, none does. All annotators judge the tasks in `gold`.
    """
    by_id = {task.id: task for task in tasks}
    share = _validate_assignment_settings(by_id, annotators, overlap, prefilled_share, gold)
    shuffled = _build_random_generator(seed, batch, "tasks")
    order = sorted(by_id)
    shuffled.shuffle(order)
    dealt = _assign_annotators(order, sorted(annotators), overlap, shuffled, gold=frozenset(gold))
    swapped = _select_swapped_assignments(
        dealt, by_id, _build_random_generator(seed, batch, "sides")
    )
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
            swapped=(name, task) in swapped,
        )
        for name, mine in task_lists.items()
        for position, task in enumerate(
            shuffle_tasks_by_scene(
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
        raise InvalidSettingError(
            "annotators", "an annotator is named twice", "Name each person once"
        )
    if not 1 <= overlap <= len(annotators):
        raise InvalidSettingError(
            "overlap",
            f"{overlap} different people cannot judge each task, {len(annotators)} are asked",
            "Ask more people, or take a smaller overlap",
        )
    for id_ in gold:
        if id_ not in by_id:
            raise UnknownNameError("task of this batch", id_, sorted(by_id)[:5])
    if share is None:
        return None
    exact = Fraction(round(share * _FINEST), _FINEST) if 0 < share < 1 else Fraction(0)
    if not 0 < exact < 1:
        raise InvalidSettingError(
            "prefilled share",
            f"{share} leaves one of the two arms empty",
            "Give more than 0 and less than 1: without a blind arm the bias of prefilled annotations cannot be measured",
        )
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
