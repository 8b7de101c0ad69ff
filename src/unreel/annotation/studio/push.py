"""Upload of assigned tasks to the Label Studio projects of their annotators.

Only tasks that are missing there are sent, in the annotator's own order. One import is one
transaction of the server, so a kill loses a complete chunk or nothing.
"""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from unreel.annotation.campaign import AnnotationTask, Campaign, PrefillStudyArm, TaskAssignment
from unreel.annotation.interfaces.label_studio_tasks import (
    TASK_KEY,
    build_label_studio_task_data,
    build_prefilled_results,
)
from unreel.annotation.interfaces.screens import AnnotationScreen
from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.studio.client import LabelStudioClient, iter_studio_project_tasks
from unreel.annotation.studio.project_state import (
    ProjectAlteration,
    PushedProjectState,
    build_pushed_project_state,
    hash_predictions,
    read_pushed_project_states,
)
from unreel.annotation.studio.projects import (
    PREFILLED,
    LabelStudioProject,
    find_marked_projects,
    open_annotator_project,
)
from unreel.annotation.studio.pull import (
    CampaignPullResult,
    ProjectPullContext,
    compare_project_state,
    pull_project_annotations,
)

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
    projects = sent = n_present = 0
    altered: tuple[ProjectAlteration, ...] = ()
    for key, group in itertools.groupby(assignments, key=_get_project_key):
        annotator, batch = key
        room = open_annotator_project(
            request.client,
            request.ledger,
            request.campaign,
            screen=request.screen,
            place=(annotator, batch, request.accounts[annotator]),
            marked=marked,
        )
        batch_tasks = list(group)
        if room.is_new:
            # As stored by the server: Label Studio may change the format of the guidelines.
            project = request.client.get(f"/api/projects/{room.project}/")
            present, state = set[str](), build_pushed_project_state(project, ())
        else:
            assigned = {a.task: a for a in batch_tasks}
            desk = ProjectPullContext(request.campaign, room, tasks, assigned)
            state, changes = _restore_altered_project(request, desk, states.get(room.key))
            present, altered = (
                _delete_duplicate_tasks(request.client, room, state),
                (*altered, *changes),
            )
        missing = [assignment for assignment in batch_tasks if assignment.task not in present]
        projects, n_present = projects + 1, n_present + len(batch_tasks) - len(missing)
        on_sent(sent + n_present)
        entries = (_build_task_entry(request, a, tasks[a.task]) for a in missing)
        for chunk in _iter_import_chunks(entries):
            _import_task_chunk(request, room, chunk, state)
            sent += len(chunk)
            on_sent(sent + n_present)
        if missing and not room.is_new:
            _delete_duplicate_tasks(request.client, room, state)
        state.remember(request.ledger, name, room.key)
    return AssignmentPushResult(rooms=projects, sent=sent, there=n_present, altered=altered)


def _get_project_key(assignment: TaskAssignment) -> tuple[str, int]:
    return assignment.annotator, assignment.batch


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
    client, ledger, project = request.client, request.ledger, context.room
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


def _build_task_entry(
    request: AssignmentPushRequest, assignment: TaskAssignment, task: AnnotationTask
) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "data": build_label_studio_task_data(
            request.screen, task, assignment, request.find_urls(task)
        )
    }
    if assignment.arm is PrefillStudyArm.PREFILLED:
        results = build_prefilled_results(task, swapped=assignment.swapped)
        if results:
            entry["predictions"] = [{"model_version": PREFILLED, "result": results}]
    return entry


def _delete_duplicate_tasks(
    client: LabelStudioClient, project: LabelStudioProject, state: PushedProjectState
) -> set[str]:
    """Delete tasks that a repeated push sent twice, the second unless only it was answered; return ids."""
    kept_tasks: dict[str, tuple[int, bool]] = {}
    for task in iter_studio_project_tasks(
        client, project.project, fields=("data", "total_annotations")
    ):
        id_, number = str(task["data"].get(TASK_KEY)), int(task["id"])
        answered = bool(task.get("total_annotations"))
        if id_ not in kept_tasks:
            kept_tasks[id_] = (number, answered)
        elif not answered:
            _delete_task(client, number, state)
        elif not kept_tasks[id_][1]:
            _delete_task(client, kept_tasks[id_][0], state)
            kept_tasks[id_] = (number, answered)
    return set(kept_tasks)


def _delete_task(client: LabelStudioClient, number: int, state: PushedProjectState) -> None:
    client.delete(f"/api/tasks/{number}/")
    state.numbers.pop(str(number), None)
