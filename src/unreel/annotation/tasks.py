"""Tasks of a campaign, built from the clips of a benchmark or from a queue of segments to screen."""

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Final

from unreel.annotation.browser_copies import ClipCopyRequest
from unreel.annotation.campaign import AnnotationInterface, AnnotationTask, AnnotatorClipCopy
from unreel.annotation.judgements import (
    VALUES,
    PreferenceAnswer,
    RatingAnswer,
    TraceAnswer,
    Value,
    VoteAnswer,
)
from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.loader import open_benchmark
from unreel.benchmarks.tables import read_table_rows
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.verdict import Position

QUEUE: Final = "queue.jsonl"
"""File name of the queue of segments to screen, which `unreel curate` writes."""
MOST_PAIRS: Final = 100_000
_PAIR: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskClip:
    """Clip for annotation: its file, its scene and its entry in the benchmark."""

    wanted: ClipCopyRequest
    group: str = ""
    entry: Entry | None = None
    """Entry in the benchmark; `None` for a segment of a queue, which has no ground truth."""


def read_task_clips(
    path: Path, *, interface: AnnotationInterface, refused: Callable[[Rejected], None]
) -> list[TaskClip]:
    """Read the clips of the benchmark or segment queue at `path`; call `refused` for invalid rows.

    Raises:
        InvalidSettingError: `path` contains no clips.
    """
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
        setting, problem = "BENCH", f"{path} names no clip"
        raise InvalidSettingError(setting, problem, "Name a benchmark or a queue that has some")
    return clips


def build_annotation_tasks(
    subjects: Iterable[TaskClip],
    copies: Mapping[str, AnnotatorClipCopy],
    *,
    interface: AnnotationInterface,
    prefill: Mapping[str, Value],
    pairs: Sequence[tuple[str, str]] = (),
) -> list[AnnotationTask]:
    """Build a task without known answers for each copied clip or pair; only `pairs` (sorted names) if given."""
    copied = sorted((s for s in subjects if s.wanted.name in copies), key=lambda s: s.wanted.name)
    sets: Iterable[tuple[TaskClip, ...]] = ((subject,) for subject in copied)
    if interface.n_clips == _PAIR:
        sets = _select_clip_pairs(copied, pairs)
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
    subjects: Sequence[TaskClip], pairs: Sequence[tuple[str, str]]
) -> list[TaskClip]:
    """Return the clips in `pairs`, or all if empty; raise `InvalidSettingError` for an unknown clip."""
    named = {name for pair in pairs for name in pair}
    if unknown := sorted(named - {subject.wanted.name for subject in subjects}):
        setting, problem = "--pairs", f"BENCH has no clip {unknown[0]!a}"
        raise InvalidSettingError(setting, problem, "Choose pairs of this benchmark's clips")
    return [s for s in subjects if not named or s.wanted.name in named]


def _select_clip_pairs(
    copied: Sequence[TaskClip], pairs: Sequence[tuple[str, str]]
) -> Iterable[tuple[TaskClip, ...]]:
    n_pairs = len(pairs) or len(copied) * (len(copied) - 1) // 2
    if n_pairs > MOST_PAIRS:
        setting, problem = "BENCH", f"{len(copied)} clips make {n_pairs:,} pairs"
        remedy = "Choose some with `unreel annotate pairs`, and give them as --pairs"
        raise InvalidSettingError(setting, problem, remedy)
    if not pairs:
        return itertools.combinations(copied, _PAIR)
    by_name = {subject.wanted.name: subject for subject in copied}
    # Clips that could not be copied are already reported.
    usable = (pair for pair in pairs if by_name.keys() >= set(pair))
    return [tuple(by_name[name] for name in pair) for pair in usable]


def select_known_answers(
    tasks: Iterable[AnnotationTask],
    subjects: Iterable[TaskClip],
    *,
    interface: AnnotationInterface,
    n: int,
    seed: int,
) -> dict[str, Value]:
    """Choose `n` tasks at random by `seed`, and return their ground-truth answers by task id.

    Raises:
        InvalidSettingError: The benchmark has ground truth for fewer than `n` tasks.
    """
    entries = {subject.wanted.name: subject.entry for subject in subjects}
    answers = {}
    for task in tasks:
        about = [entries.get(name) for name in task.names]
        value = _find_known_answer(interface, [entry for entry in about if entry is not None])
        if value is not None and None not in about:
            answers[task.id] = value
    if len(answers) < n:
        setting, problem = "--gold", f"the benchmark has the answer of {len(answers)} tasks"
        raise InvalidSettingError(setting, problem, f"Give {len(answers)} at most")
    chosen = Random(f"gold {seed}").sample(sorted(answers), n)  # noqa: S311  no secret
    return {task: answers[task] for task in chosen}


def read_prefilled_answers(file: Path) -> dict[str, Value]:
    """Read prefilled answers: JSONL with `name` (`a+b` for a pair) and `value`.

    Raises:
        UnreadableSourceError: A line is invalid.
    """
    answers: dict[str, Value] = {}
    for number, row in enumerate(read_table_rows(file), start=1):
        try:
            if isinstance(row, Rejected):
                raise ValueError(row.why)  # noqa: TRY004, TRY301  told below, with its line
            raw = row["value"]
            value = json.loads(raw) if isinstance(raw, str) else raw
            answers[str(row["name"])] = VALUES.validate_python(value)
        except (ValueError, KeyError) as error:
            problem = f"line {number} has no name and value ({type(error).__name__})"
            remedy = 'Write {"name": "clip", "value": {"kind": "voted", "label": "real"}}'
            raise UnreadableSourceError(str(file), problem, remedy) from error
    return answers


def _find_known_answer(interface: AnnotationInterface, entries: list[Entry]) -> Value | None:
    """Return the right answer to a task by the benchmark's ground truth; `None` if it has none."""
    if not entries:
        return None
    entry = entries[0]
    answer: Value | None = None
    match interface:
        case AnnotationInterface.TRACE:
            answer = TraceAnswer(traces=entry.traces, label=entry.label)
        case AnnotationInterface.REALITY:
            answer = VoteAnswer(label=entry.label)
        case AnnotationInterface.REALISM:
            answer = None if entry.rating is None else RatingAnswer(rating=entry.rating)
        case AnnotationInterface.PREFERENCE:
            answer = _find_better_clip(entries)
        case AnnotationInterface.SCREENING | AnnotationInterface.PASS_FAIL:
            pass
    return answer


def _find_better_clip(entries: list[Entry]) -> PreferenceAnswer | None:
    scores = [entry.rating.score for entry in entries if entry.rating is not None]
    if len(scores) != _PAIR or scores[0] == scores[1]:
        return None
    return PreferenceAnswer(better=Position.FIRST if scores[0] > scores[1] else Position.SECOND)


def _read_segment_queue(file: Path, refused: Callable[[Rejected], None]) -> Iterator[TaskClip]:
    for row in read_table_rows(file):
        if isinstance(row, Rejected):
            refused(row)
            continue
        try:
            piece, location = str(row["piece"]), str(row["location"])
            start_s, length_s = Fraction(str(row["start_s"])), Fraction(str(row["length_s"]))
        except (KeyError, ValueError, ZeroDivisionError):
            refused(Rejected(str(row.get("piece", "a line")), "it names no piece, place and span"))
            continue
        request = ClipCopyRequest(piece, location, start_s=start_s, length_s=length_s)
        yield TaskClip(wanted=request, group=str(row.get("name", "")))
