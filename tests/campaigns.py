"""Small campaigns, tasks and records, for tests that need some."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationRecord,
    AnnotationTask,
    Annotator,
    AnnotatorClipCopy,
    Campaign,
    SubmissionQuarantine,
    TaskAssignment,
    Value,
    VoteAnswer,
)
from unreel.annotation.ledger.connection import open_ledger
from unreel.core.content_ids import compute_placeholder_clip_id
from unreel.core.judgement import Label

ANN, BEN, CAT = (Annotator(name, f"{name}@example.org") for name in ("ann", "ben", "cat"))
CAMPAIGN = Campaign(
    name="votes",
    interface=AnnotationInterface.REALITY,
    benchmark="bench",
    guidelines="Look at the hands.",
    interface_version="v1",
)


def copy_of(
    name: str, *, rate: Fraction = Fraction(30000, 1001), n_frames: int = 90
) -> AnnotatorClipCopy:
    """A copy of a clip that is nowhere."""
    place = f"{name}.mp4"
    size = {"width": 64, "height": 48}
    return AnnotatorClipCopy(
        clip=compute_placeholder_clip_id(name), location=place, rate=rate, n_frames=n_frames, **size
    )


def task_of(*names: str, group: str = "", **given: Any) -> AnnotationTask:
    """A task about the clips of those names."""
    return AnnotationTask(names=names, copies=tuple(map(copy_of, names)), group=group, **given)


def tasks_of(n: int, *, groups: int = 0) -> list[AnnotationTask]:
    """That many tasks of one clip each, in that many groups, or in none."""
    return [task_of(f"c{i:05}", group=f"g{i % groups}" if groups else "") for i in range(n)]


def in_order(
    annotator: str, tasks: list[AnnotationTask], *, batch: int = 1
) -> list[TaskAssignment]:
    """Those tasks before one annotator, as they come."""
    return [
        TaskAssignment(annotator=annotator, task=task.id, batch=batch, position=place)
        for place, task in enumerate(tasks)
    ]


def record_of(
    task: AnnotationTask,
    annotator: str = "ann",
    outcome: Value | SubmissionQuarantine | None = None,
    **given: Any,
) -> AnnotationRecord:
    """What an annotator said of a task, `real` unless given."""
    record = AnnotationRecord(
        campaign=CAMPAIGN.name,
        annotator=annotator,
        task=task.id,
        origin=f"studio:{annotator}:{task.id}",
        guidelines_version=CAMPAIGN.guidelines_version,
        interface_version=CAMPAIGN.interface_version,
        submitted_us=1_000_000,
        lead_us=5_000_000,
        raw='{"result": []}',
        outcome=outcome or VoteAnswer(label=Label.REAL),
    )
    return replace(record, **given)


def append_some(address: str, who: str) -> None:
    """What a writer of its own process does."""
    with open_ledger(address) as ledger:
        for start in range(0, 200, 20):
            ledger.append(record_of(task, who) for task in tasks_of(start + 20)[start:])
            ledger.append(record_of(task, "both") for task in tasks_of(start + 20)[start:])


def open_and_close(address: str) -> None:
    """What a process does that comes to a ledger first, or at the same time as others."""
    open_ledger(address).close()
