"""Push of a campaign's tasks to Label Studio, and export of its screening decisions."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from unreel.annotation.browser_copies import (
    ClipCopyResult,
    build_clip_copy_urls,
    make_browser_copies,
)
from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationTask,
    Annotator,
    AnnotatorClipCopy,
    Campaign,
)
from unreel.annotation.campaign_state import iter_valid_judgements, read_campaign_records
from unreel.annotation.interfaces.screens import AnnotationScreen, get_annotation_screen
from unreel.annotation.judgements import ScreeningAnswer, Value
from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.studio.client import LabelStudioClient
from unreel.annotation.studio.push import (
    AssignmentPushRequest,
    AssignmentPushResult,
    push_assignments,
)
from unreel.annotation.studio.server import create_annotator_accounts
from unreel.annotation.studio.settings import read_copy_name_key
from unreel.annotation.tasks import (
    TaskClip,
    assign_tasks_to_annotators,
    build_annotation_tasks,
    read_task_clips,
    select_clips_of_pairs,
    select_known_answers,
)
from unreel.benchmarks.entry import Rejected
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.engine.location import StorageLocation
from unreel.engine.progress import JobCallbacks, Progress
from unreel.engine.storage_access import ClipAccessSettings

SHARE = 0.5
"""Fraction of prefilled tasks among those with earlier annotations; the rest stays blind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignPushSettings:
    """Settings of a campaign push: benchmark, question, annotators, and tasks per annotator."""

    benchmark: Path
    campaign: str
    interface: AnnotationInterface
    annotators: tuple[Annotator, ...]
    overlap: int = 3
    seed: int = 0
    question: str = ""
    n_gold: int = 0
    prefill: Mapping[str, Value] = field(default_factory=dict)
    pairs: tuple[tuple[str, str], ...] = ()
    """Names of the two clips of each pair to compare; empty for all possible pairs."""
    guidelines: str = ""
    """Guidelines for the annotators; "" for the default guidelines of the interface."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignPushContext:
    """Services of a campaign push: ledger, Label Studio client, and storage of the clip copies."""

    ledger: Ledger
    client: LabelStudioClient
    place: StorageLocation
    access: ClipAccessSettings
    folder: Path
    """State folder; generated passwords and the key for names of copies are stored there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignPushReport:
    """Result of a campaign push: counts of tasks, failed clips and rejected benchmark rows."""

    campaign: str
    tasks: int
    new_tasks: int
    batch: int
    """Number of the batch of new tasks; of the last batch if there are no new tasks."""
    pushed: AssignmentPushResult
    failures: Mapping[str, Failure]
    """Failure of each clip without a browser copy, by clip name."""
    rejected: tuple[Rejected, ...]


def push_campaign_tasks(
    settings: CampaignPushSettings, context: CampaignPushContext, callbacks: JobCallbacks
) -> CampaignPushReport:
    """Copy the clips, assign new tasks to annotators, and upload all assigned tasks to Label Studio.

    The push may be killed at any time and run again with the same settings. New clips of the
    benchmark, and clips that can be read now, become a new batch.
    """
    rejected: list[Rejected] = []
    screen = get_annotation_screen(settings.interface, question=settings.question)
    subjects = read_task_clips(
        settings.benchmark, interface=settings.interface, refused=rejected.append
    )
    subjects = select_clips_of_pairs(subjects, settings.pairs)
    copies, failures = _copy_all_clips(subjects, context, callbacks)
    tasks = build_annotation_tasks(
        subjects,
        copies,
        interface=settings.interface,
        prefill=settings.prefill,
        pairs=settings.pairs,
    )
    if not tasks:
        why = "; ".join(sorted({str(failure) for failure in failures.values()})[:3])
        raise InvalidSettingError(
            "BENCH",
            f"no clip of {settings.benchmark} can be shown ({why})",
            "Name clips that can be decoded",
        )
    campaign = _start_campaign(settings, screen, context.ledger)
    gold = _select_gold_answers(settings, tasks, subjects, context.ledger)
    n_new, batch = _assign_new_tasks(settings, tasks, gold, context.ledger)
    people = context.ledger.annotators()
    involved = {a.annotator for a in context.ledger.assignments(settings.campaign)}
    accounts = create_annotator_accounts(
        context.client,
        [person for person in people if person.name in involved],
        folder=context.folder,
    )
    callbacks.on_due("tasks", sum(1 for _ in context.ledger.assignments(settings.campaign)))
    delivery = AssignmentPushRequest(
        client=context.client,
        ledger=context.ledger,
        campaign=campaign,
        screen=screen,
        accounts=accounts,
        find_urls=lambda task: build_clip_copy_urls(
            context.place, [copy.location for copy in task.copies]
        ),
    )
    return CampaignPushReport(
        campaign=settings.campaign,
        tasks=len(tasks),
        new_tasks=n_new,
        batch=batch,
        pushed=push_assignments(
            delivery, on_sent=lambda n: callbacks.on_step("tasks", Progress(done=n))
        ),
        failures=failures,
        rejected=tuple(rejected),
    )


def write_screening_decisions(ledger: Ledger, campaign: str, file: Path) -> dict[str, int]:
    """Write the annotators' decisions to keep or remove segments to `file`; return the count of each.

    The file is JSONL, for the key `decisions` of `[screen]` in a curation recipe. A segment is kept
    or removed if more than half of its assigned annotators agree. Otherwise it is counted as
    undecided and not written.
    """
    records = read_campaign_records(ledger, campaign)
    n_assigned = Counter(task for _, task in records.assignments)
    decisions: dict[str, Counter[bool]] = {}
    for judgement in iter_valid_judgements(records):
        if isinstance(judgement.value, ScreeningAnswer):
            decisions.setdefault(judgement.task.id, Counter())[judgement.value.keep] += 1
    counts = Counter[str]()
    with OutputDirectory(file.parent).create_text(file.name) as lines:
        for id_, votes in decisions.items():
            (keep, n), *_ = votes.most_common()
            if 2 * n > n_assigned[id_]:
                decision = "keep" if keep else "remove"
                counts[decision] += 1
                row = {"piece": records.tasks[id_].names[0], "decision": decision}
                lines.write(json.dumps(row) + "\n")
            else:
                counts["undecided"] += 1
    return dict(counts)


def _copy_all_clips(
    clips: list[TaskClip], context: CampaignPushContext, callbacks: JobCallbacks
) -> tuple[dict[str, AnnotatorClipCopy], dict[str, Failure]]:
    copies: dict[str, AnnotatorClipCopy] = {}
    failures: dict[str, Failure] = {}
    progress = Progress()

    def count(copy: ClipCopyResult) -> None:
        if isinstance(copy.result, Failure):
            progress.failures[copy.result.reason.value] += 1
        else:
            progress.done += 1
        callbacks.on_step("copies", progress)

    callbacks.on_due("copies", len(clips))
    due = [subject.wanted for subject in clips]
    key = read_copy_name_key(context.folder)
    made = make_browser_copies(
        due, location=context.place, access=context.access, key=key, on_copy=count
    )
    for copied in made:
        if isinstance(copied.result, Failure):
            failures[copied.name] = copied.result
        else:
            copies[copied.name] = copied.result
    return copies, failures


def _start_campaign(
    settings: CampaignPushSettings, screen: AnnotationScreen, ledger: Ledger
) -> Campaign:
    campaign = Campaign(
        name=settings.campaign,
        interface=settings.interface,
        benchmark=str(settings.benchmark.absolute()),
        overlap=settings.overlap,
        seed=settings.seed,
        guidelines=settings.guidelines or screen.guidelines,
        interface_version=screen.version,
    )
    ledger.enlist(settings.annotators)
    ledger.open_campaign(campaign)
    return campaign


def _select_gold_answers(
    settings: CampaignPushSettings,
    tasks: list[AnnotationTask],
    clips: list[TaskClip],
    ledger: Ledger,
) -> dict[str, Value]:
    """Choose tasks with known answers for the campaign's first batch; return {} for later batches."""
    if not settings.n_gold or any(list(ledger.assignments(settings.campaign))):
        return {}
    return select_known_answers(
        tasks, clips, interface=settings.interface, n=settings.n_gold, seed=settings.seed
    )


def _assign_new_tasks(
    settings: CampaignPushSettings,
    tasks: list[AnnotationTask],
    gold: Mapping[str, Value],
    ledger: Ledger,
) -> tuple[int, int]:
    """Assign the unassigned tasks to annotators; return how many there are and the batch number."""
    existing = list(ledger.assignments(settings.campaign))
    assigned, last = {a.task for a in existing}, max((a.batch for a in existing), default=0)
    new = [replace(task, known=gold.get(task.id)) for task in tasks if task.id not in assigned]
    if not new:
        return 0, last
    ledger.add_tasks(settings.campaign, new)
    assignments = assign_tasks_to_annotators(
        new,
        [annotator.name for annotator in settings.annotators],
        overlap=settings.overlap,
        seed=settings.seed,
        batch=last + 1,
        prefilled_share=SHARE if settings.prefill else None,
        gold=list(gold),
    )
    ledger.assign(settings.campaign, assignments)
    return len(new), last + 1
