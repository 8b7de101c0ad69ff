"""Import of Label Studio annotations into the ledger; each version of each annotation once.

Label Studio lets every account write everywhere and does not validate input. Therefore a
project has one owner, an annotation of another account in the project is not a judgement,
answers to a changed screen or task are quarantined, and every result is parsed as untrusted
input.

Every pull lists all tasks. It fetches the tasks whose timestamp changed or that have an
annotation missing in the ledger, so no answer is missed if the server's clock is set back.
"""

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from unreel.annotation.campaign import (
    AnnotationRecord,
    AnnotationTask,
    Campaign,
    PrefillStudyArm,
    QuarantineReason,
    SubmissionQuarantine,
    TaskAssignment,
    Value,
)
from unreel.annotation.interfaces.label_studio_tasks import (
    TASK_KEY,
    Result,
    build_prefilled_results,
    parse_judgement,
)
from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.studio.client import (
    NOT_FOUND,
    PAGE,
    LabelStudioClient,
    build_studio_request_error,
    iter_studio_project_tasks,
)
from unreel.annotation.studio.projects import (
    LISTED,
    LabelStudioProject,
    ProjectAlteration,
    ProjectDifferences,
    PushedProjectState,
    build_pushed_project_state,
    format_project_marker,
    read_pushed_project_states,
    read_stored_projects,
    restore_studio_project,
)

SEEN = "seen"
"""Kind under which the ledger stores the version of each task of each project at the last pull."""
STRANGER = "somebody-else"
"""Placeholder name for an account that wrote into another annotator's project."""
_AUTHORS = ("completed_by", "updated_by")
"""Fields of the claimed author, which any account may write, and of the last editor."""
_STORED_FIELDS = ("id", "task", *_AUTHORS, "result", "was_cancelled", "created_at", "updated_at")
_FIELDS = ("annotations", "lead_time", *_STORED_FIELDS[1:])
_LONGEST_S = 10**9
_LONGEST_ID = 100
_MEANWHILE_US = 60_000_000
"""Tolerance in microseconds for answers that are saved during a restoration, which takes less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignPullResult:
    """Result of importing annotations: their counts, and the deleted and altered projects."""

    rooms: int = 0
    seen: int = 0
    """Number of fetched annotations."""
    new: int = 0
    quarantined: int = 0
    """Number of fetched annotations that are quarantined."""
    gone: tuple[str, ...] = ()
    """Projects deleted on the server; earlier answers are kept."""
    altered: tuple[ProjectAlteration, ...] = ()
    """Projects with changed settings or tasks."""


@dataclass(frozen=True, slots=True)
class ProjectPullContext:
    """Campaign, project, tasks and assignments that importing the annotations of a project needs."""

    campaign: Campaign
    studio_project: LabelStudioProject
    tasks: Mapping[str, AnnotationTask]
    assigned: Mapping[str, TaskAssignment]
    stored_origins: Collection[str] = frozenset()
    """Origins of the campaign's records in the ledger, without creation times."""

    def prefilled_annotations(self, task: str) -> Sequence[Result]:
        """Return the prefilled annotations that the annotator sees on a task; empty if there are none."""
        assignment = self.assigned.get(task)
        if assignment is None or assignment.arm is not PrefillStudyArm.PREFILLED:
            return ()
        return build_prefilled_results(
            self.tasks[task], self.campaign.interface, swapped=assignment.swapped
        )

    def origin(self, annotation: object) -> str:
        mark = format_project_marker(
            self.campaign.name, self.studio_project.annotator, self.studio_project.batch
        )
        return f"{mark}/{annotation}"


def pull_campaign_annotations(
    client: LabelStudioClient,
    ledger: Ledger,
    campaign: str,
    *,
    on_project: Callable[[CampaignPullResult], None],
    everything: bool = False,
) -> CampaignPullResult:
    """Store all new annotations of a campaign's projects in the ledger, and restore altered projects.

    It is idempotent and may be killed at any time: nothing is stored twice. With `everything`,
    known annotations are fetched too.
    """
    known = ledger.campaign(campaign)
    tasks = {task.id: task for task in ledger.tasks(campaign)}
    states, pulled = read_pushed_project_states(ledger, campaign), ledger.memories(campaign, SEEN)
    stored = {origin.partition("@")[0] for origin in ledger.origins(campaign)}
    total = CampaignPullResult()
    for key, project in sorted(read_stored_projects(ledger, campaign).items()):
        assignments = ledger.assignments(campaign, annotator=project.annotator)
        assigned = {a.task: a for a in assignments if a.batch == project.batch}
        desk = ProjectPullContext(known, project, tasks, assigned, stored)
        if client.look(f"/api/projects/{project.project}/").status == NOT_FOUND:
            total = replace(total, gone=(*total.gone, key))
            continue
        versions = {} if everything else json.loads(pulled.get(key, "{}"))
        total = pull_project_annotations(
            client, ledger, desk, state=states.get(key), versions=versions, total=total
        )
        on_project(total)
    return total


def pull_project_annotations(
    client: LabelStudioClient,
    ledger: Ledger,
    context: ProjectPullContext,
    *,
    state: PushedProjectState | None,
    versions: Mapping[str, str],
    total: CampaignPullResult,
) -> CampaignPullResult:
    """Store the new annotations of one project in the ledger, then restore the project if altered.

    `state` is `None` if it is not stored. `versions` are those of the last pull, by task number.
    """
    project, campaign = context.studio_project, context.campaign.name
    n_bound = None if state is None else len(state.numbers)
    listed, look = compare_project_state(client, project, state)
    changed = [
        int(task["id"])
        for task in listed
        if versions.get(str(task["id"])) != _format_task_version(task)
        or any(
            context.origin(id_) not in context.stored_origins for id_ in _parse_annotation_ids(task)
        )
    ]
    quarantined, suspects = 0, list[int]()
    for first in range(0, len(changed), PAGE):
        fields = (*LISTED, *_FIELDS)
        page = list(
            iter_studio_project_tasks(
                client, project.project, fields=fields, numbers=changed[first : first + PAGE]
            )
        )
        # Checked after the answers are read: if the project is still as pushed, they count.
        look.see_project(_read_project(client, project))
        for task in page:
            look.see_task(task)
        records = [record for task in page for record in _iter_task_records(task, context, look)]
        rejected = [
            (record, record.outcome.reason)
            for record in records
            if isinstance(record.outcome, SubmissionQuarantine)
        ]
        tampered = [record for record, why in rejected if why is QuarantineReason.TAMPERED]
        stored = ledger.known_keys([record.key for record in tampered]) if tampered else set()
        fresh = [record for record in tampered if record.key not in stored]
        quarantined += len(fresh)
        suspects += [json.loads(record.raw)["id"] for record in fresh]
        total = replace(
            total,
            seen=total.seen + len(records),
            new=total.new + (ledger.append(records) if records else 0),
            quarantined=total.quarantined + len(rejected),
        )
    for annotation in suspects:  # already stored; deletion reopens the task
        client.delete(f"/api/annotations/{annotation}/")
    if look.is_altered:
        altered = look.alteration(project, quarantined=quarantined)
        problem = restore_studio_project(client, project, look, context.prefilled_annotations)
        total = replace(total, altered=(*total.altered, replace(altered, problem=problem)))
    if look.is_altered or n_bound != len(look.state.numbers):
        look.state.remember(ledger, campaign, project.key)
    # Stored after the records: if the process is killed in between, they are fetched again.
    now_seen = {str(task["id"]): _format_task_version(task) for task in listed}
    if now_seen != versions:
        ledger.remember(campaign, SEEN, project.key, json.dumps(now_seen))
    return replace(total, rooms=total.rooms + 1)


def compare_project_state(
    client: LabelStudioClient, studio_project: LabelStudioProject, state: PushedProjectState | None
) -> tuple[list[Mapping[str, Any]], ProjectDifferences]:
    """Return the server's tasks of a project without answers, and its differences from the pushed state."""
    project = _read_project(client, studio_project)
    listed = list(iter_studio_project_tasks(client, studio_project.project, fields=LISTED))
    look = ProjectDifferences(state or build_pushed_project_state(project, listed))
    look.see_project(project)
    for task in listed:
        look.see_task(task)
    return listed, look


def _read_project(
    client: LabelStudioClient, studio_project: LabelStudioProject
) -> Mapping[str, Any]:
    reply = client.look(f"/api/projects/{studio_project.project}/")
    project = reply.document()
    if not reply.is_ok or not isinstance(project, dict):
        raise build_studio_request_error(reply, f"GET /api/projects/{studio_project.project}/")
    return project


def _format_task_version(task: Mapping[str, Any]) -> str:
    """Return a version that changes if an annotation of the task is saved, edited or deleted."""
    return f"{task.get('updated_at')} {','.join(sorted(_parse_annotation_ids(task)))}"


def _parse_annotation_ids(task: Mapping[str, Any]) -> list[str]:
    return [id_ for id_ in str(task.get("annotations_ids") or "").split(",") if id_]


def _iter_task_records(
    task: Mapping[str, Any], context: ProjectPullContext, differences: ProjectDifferences
) -> Iterator[AnnotationRecord]:
    data = task.get("data")
    claimed = str(data.get(TASK_KEY, ""))[:_LONGEST_ID] if isinstance(data, dict) else ""
    id_ = differences.state.numbers.get(str(task["id"]), claimed)
    if "annotations" not in task:
        # The annotations of this task exceed the size limit of a reply.
        note = {"id": f"task-{task['id']}", "created_at": "", "updated_at": ""}
        quarantine = SubmissionQuarantine(
            QuarantineReason.TOO_LARGE, "the task's annotations are too much"
        )
        yield _build_record(note, id_, context, outcome=quarantine)
        return
    reason = differences.reason(str(task["id"]))
    for annotation in task["annotations"]:
        if isinstance(annotation, dict) and "id" in annotation:
            change, saved_us = reason, _parse_timestamp_us(annotation.get("updated_at"))
            begun_us = saved_us - (_parse_lead_time_us(annotation.get("lead_time")) or 0)
            # An answer that was begun before its project or task was restored is stale.
            for key in () if change else ("", str(task["id"])):
                at = differences.state.restored.get(key, "")
                restored_us = _parse_timestamp_us(at)
                if restored_us and begun_us <= restored_us < saved_us + _MEANWHILE_US:
                    change = f"the answer was begun before {at}, when a change was undone"
                    break
            outcome = _parse_or_quarantine_submission(annotation, id_, context, change=change)
            yield _build_record(annotation, id_, context, outcome=outcome)


def _build_record(
    annotation: Mapping[str, Any],
    task: str,
    context: ProjectPullContext,
    *,
    outcome: Value | SubmissionQuarantine,
) -> AnnotationRecord:
    project, annotator = context.studio_project, context.studio_project.annotator
    if isinstance(outcome, SubmissionQuarantine) and outcome.reason is QuarantineReason.NOT_THEIRS:
        annotator = STRANGER
    raw = {name: annotation.get(name) for name in (*_STORED_FIELDS, "lead_time")}
    return AnnotationRecord(
        campaign=context.campaign.name,
        annotator=annotator,
        task=task or "unknown",
        origin=f"{context.origin(annotation['id'])}@{annotation.get('created_at')}",
        guidelines_version=project.guidelines_version,
        interface_version=project.interface_version,
        submitted_us=_parse_timestamp_us(annotation.get("updated_at")),
        lead_us=_parse_lead_time_us(annotation.get("lead_time")),
        raw=json.dumps(raw, sort_keys=True),
        outcome=outcome,
    )


def _parse_or_quarantine_submission(
    annotation: Mapping[str, Any], task: str, context: ProjectPullContext, *, change: str
) -> Value | SubmissionQuarantine:
    assignment, owner = context.assigned.get(task), context.studio_project.owner
    for author in _AUTHORS:
        if annotation.get(author) != owner:
            detail = f"{author} is {annotation.get(author)!a}, not account {owner}"[:200]
            return SubmissionQuarantine(QuarantineReason.NOT_THEIRS, detail)
    if assignment is None:
        detail = f"task {task!a} was never given to {context.studio_project.annotator}"
        return SubmissionQuarantine(QuarantineReason.NOT_ASSIGNED, detail)
    if change:
        return SubmissionQuarantine(QuarantineReason.TAMPERED, change)
    if annotation.get("was_cancelled"):
        return SubmissionQuarantine(QuarantineReason.MISSING, "the task was skipped")
    interface, results = context.campaign.interface, annotation.get("result")
    return parse_judgement(interface, results, context.tasks[task], swapped=assignment.swapped)


def _parse_timestamp_us(stamp: object) -> int:
    """Parse a timestamp to microseconds since 1970; return 0 if it is missing or invalid."""
    try:
        passed = datetime.fromisoformat(str(stamp)) - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, TypeError):
        return 0
    return passed // timedelta(microseconds=1)


def _parse_lead_time_us(seconds: object) -> int | None:
    if not isinstance(seconds, int | float) or not math.isfinite(seconds):
        return None
    return round(seconds * 1_000_000) if 0 <= seconds <= _LONGEST_S else None
