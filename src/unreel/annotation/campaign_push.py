"""Push of the tasks of a campaign to Label Studio, and export of screening decisions.

Only tasks that are missing there are sent, in the annotator's own order. One import is one
transaction of the server, so a kill loses a complete chunk or nothing.
"""

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from unreel.annotation.browser_copies import build_clip_copy_urls, make_browser_copies
from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationTask,
    Annotator,
    AnnotatorClipCopy,
    Campaign,
    PrefillStudyArm,
    ScreeningAnswer,
    TaskAssignment,
    Value,
)
from unreel.annotation.campaign_state import iter_valid_judgements, read_campaign_records
from unreel.annotation.interfaces.label_studio_tasks import (
    TASK_KEY,
    AnnotationScreen,
    build_label_studio_task_data,
    build_prefilled_results,
    get_annotation_screen,
)
from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.studio.client import (
    LabelStudioClient,
    create_annotator_accounts,
    iter_studio_project_tasks,
    read_copy_name_key,
)
from unreel.annotation.studio.projects import (
    PREFILLED,
    LabelStudioProject,
    ProjectAlteration,
    PushedProjectState,
    build_pushed_project_state,
    find_marked_projects,
    hash_predictions,
    open_annotator_project,
    read_pushed_project_states,
)
from unreel.annotation.studio.pull import (
    CampaignPullResult,
    ProjectPullContext,
    compare_project_state,
    pull_project_annotations,
)
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

CHUNK = 5000
"""Maximum number of tasks per import; after each import Label Studio counts the complete project again."""
CHUNK_BYTES = 16 * 1024 * 1024
"""Size in bytes at which an import is sent; reached before `CHUNK` by tasks with prefilled annotations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentPushRequest:
    """Input for uploading assigned tasks: ledger, campaign, screen, accounts and Label Studio client."""

    client: LabelStudioClient
    ledger: Ledger
    campaign: Campaign
    screen: AnnotationScreen
    accounts: Mapping[str, int]
    """Number of each annotator's account, by annotator name."""
    find_urls: Callable[[AnnotationTask], Sequence[str]]
    """Function that returns the URLs of the browser copies of a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentPushResult:
    """Result of an upload of assigned tasks: counts of projects and tasks, and altered projects."""

    rooms: int
    sent: int
    there: int
    """Number of tasks that were already in their projects."""
    altered: tuple[ProjectAlteration, ...] = ()
    """Projects with changed settings or tasks."""


def push_assignments(
    request: AssignmentPushRequest, *, on_sent: Callable[[int], None]
) -> AssignmentPushResult:
    """Upload every assigned task to the project of its annotator; existing tasks are skipped.

    `on_sent` is called with the number of tasks in their projects so far.
    """
    name = request.campaign.name
    tasks = {task.id: task for task in request.ledger.tasks(name)}
    # Read completely first: a push is long, and PostgreSQL may be unreachable before its end.
    assignments = list(request.ledger.assignments(name))
    marked = cache(partial(find_marked_projects, request.client))
    states = read_pushed_project_states(request.ledger, name)

    def build_entry(assignment: TaskAssignment) -> dict[str, Any]:
        task = tasks[assignment.task]
        urls = request.find_urls(task)
        data = build_label_studio_task_data(request.screen, task, assignment, urls)
        if assignment.arm is PrefillStudyArm.PREFILLED:
            results = build_prefilled_results(
                task, request.screen.interface, swapped=assignment.swapped
            )
            if results:
                predictions = [{"model_version": PREFILLED, "result": results}]
                return {"data": data, "predictions": predictions}
        return {"data": data}

    projects = sent = n_present = 0
    altered: tuple[ProjectAlteration, ...] = ()
    groups = itertools.groupby(assignments, key=lambda a: (a.annotator, a.batch))
    for (annotator, batch), group in groups:
        studio_project = open_annotator_project(
            request.client,
            request.ledger,
            request.campaign,
            screen=request.screen,
            place=(annotator, batch, request.accounts[annotator]),
            marked=marked,
        )
        batch_tasks = list(group)
        if studio_project.is_new:
            # As stored by the server: Label Studio may change the format of the guidelines.
            project = request.client.get(f"/api/projects/{studio_project.project}/")
            present, state = set[str](), build_pushed_project_state(project, ())
        else:
            assigned = {a.task: a for a in batch_tasks}
            desk = ProjectPullContext(request.campaign, studio_project, tasks, assigned)
            state, changes = _restore_altered_project(request, desk, states.get(studio_project.key))
            present, altered = (
                _delete_duplicate_tasks(request.client, studio_project, state),
                (*altered, *changes),
            )
        missing = [assignment for assignment in batch_tasks if assignment.task not in present]
        projects, n_present = projects + 1, n_present + len(batch_tasks) - len(missing)
        on_sent(sent + n_present)
        entries = (build_entry(assignment) for assignment in missing)
        for chunk in _iter_import_chunks(entries):
            _import_task_chunk(request, studio_project, chunk, state)
            sent += len(chunk)
            on_sent(sent + n_present)
        if missing and not studio_project.is_new:
            _delete_duplicate_tasks(request.client, studio_project, state)
        state.remember(request.ledger, name, studio_project.key)
    return AssignmentPushResult(rooms=projects, sent=sent, there=n_present, altered=altered)


def _iter_import_chunks(entries: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield the tasks in chunks for import, each limited in its number of tasks and bytes."""
    chunk: list[dict[str, Any]] = []
    n_bytes = 0
    for entry in entries:
        chunk.append(entry)
        n_bytes += len(json.dumps(entry))
        if len(chunk) >= CHUNK or n_bytes >= CHUNK_BYTES:
            yield chunk
            chunk, n_bytes = [], 0
    if chunk:
        yield chunk


def _restore_altered_project(
    request: AssignmentPushRequest, context: ProjectPullContext, state: PushedProjectState | None
) -> tuple[PushedProjectState, tuple[ProjectAlteration, ...]]:
    """Pull and restore a project that differs from its pushed state; return the state and alterations."""
    client, ledger, project = request.client, request.ledger, context.studio_project
    _, look = compare_project_state(client, project, state)
    if not look.is_altered:
        return look.state, ()
    pulled = pull_project_annotations(
        client, ledger, context, state=state, versions={}, total=CampaignPullResult()
    )
    return read_pushed_project_states(ledger, context.campaign.name)[project.key], pulled.altered


def _import_task_chunk(
    request: AssignmentPushRequest,
    project: LabelStudioProject,
    chunk: list[dict[str, Any]],
    state: PushedProjectState,
) -> None:
    """Import a chunk of tasks; the ledger gets their data before the import and their numbers after it."""
    client, campaign = request.client, request.campaign.name
    is_marked = any("predictions" in entry for entry in chunk)
    for entry in chunk:
        id_ = entry["data"][TASK_KEY]
        state.tasks[id_] = entry["data"]
        if "predictions" in entry:
            state.marks[id_] = hash_predictions(entry["predictions"])
    if is_marked:
        state.settings["model_version"] = PREFILLED
    state.remember(request.ledger, campaign, project.key)
    path = f"/api/projects/{project.project}"
    sent = client.post(f"{path}/import", chunk, return_task_ids="true")
    numbers = sorted(int(number) for number in sent.get("task_ids", ()))
    if len(numbers) == len(chunk):
        ids = (entry["data"][TASK_KEY] for entry in chunk)
        state.numbers |= zip(map(str, numbers), ids, strict=True)
        state.remember(request.ledger, campaign, project.key)
    if is_marked:
        # Label Studio shows only predictions of the model version that the project names.
        client.patch(f"{path}/", {"model_version": PREFILLED})


def _delete_duplicate_tasks(
    client: LabelStudioClient, project: LabelStudioProject, state: PushedProjectState
) -> set[str]:
    """Delete tasks that a repeated push sent twice, the second unless only it was answered; return ids."""
    first: dict[str, tuple[int, bool]] = {}
    for task in iter_studio_project_tasks(
        client, project.project, fields=("data", "total_annotations")
    ):
        id_, number = str(task["data"].get(TASK_KEY)), int(task["id"])
        answered = bool(task.get("total_annotations"))
        if id_ not in first:
            first[id_] = (number, answered)
            continue
        duplicate = number
        if answered:
            if first[id_][1]:
                continue
            duplicate, first[id_] = first[id_][0], (number, answered)
        client.delete(f"/api/tasks/{duplicate}/")
        state.numbers.pop(str(duplicate), None)
    return set(first)


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
    """Number of the batch of new tasks; of the last batch without new tasks."""
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
    ledger = context.ledger
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
    existing = list(ledger.assignments(settings.campaign))
    gold: dict[str, Value] = {}
    if settings.n_gold and not existing:  # only the first batch has tasks with known answers
        gold = select_known_answers(
            tasks, subjects, interface=settings.interface, n=settings.n_gold, seed=settings.seed
        )
    assigned, batch = {a.task for a in existing}, max((a.batch for a in existing), default=0)
    new = [replace(task, known=gold.get(task.id)) for task in tasks if task.id not in assigned]
    if new:
        batch += 1
        ledger.add_tasks(settings.campaign, new)
        assignments = assign_tasks_to_annotators(
            new,
            [annotator.name for annotator in settings.annotators],
            overlap=settings.overlap,
            seed=settings.seed,
            batch=batch,
            prefilled_share=SHARE if settings.prefill else None,
            gold=list(gold),
        )
        ledger.assign(settings.campaign, assignments)
    people = ledger.annotators()
    involved = {a.annotator for a in ledger.assignments(settings.campaign)}
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
        new_tasks=len(new),
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
    callbacks.on_due("copies", len(clips))
    due = [subject.wanted for subject in clips]
    key = read_copy_name_key(context.folder)
    for name, result in make_browser_copies(
        due, location=context.place, access=context.access, key=key
    ):
        if isinstance(result, Failure):
            failures[name] = result
            progress.failures[result.reason.value] += 1
        else:
            copies[name] = result
            progress.done += 1
        callbacks.on_step("copies", progress)
    return copies, failures
