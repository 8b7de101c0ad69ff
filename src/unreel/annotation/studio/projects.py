"""Project of one annotator and batch in Label Studio: settings, URL, and detection and repair of changes.

Label Studio has no roles, so any account can change a project or a task. All data read from a
project are first compared with the pushed state.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import quote

from unreel.annotation.campaign import Campaign
from unreel.annotation.interfaces.label_studio_tasks import TASK_KEY, AnnotationScreen, Result
from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.studio.client import LabelStudioClient
from unreel.core.content_ids import digest
from unreel.core.errors import MachineError

PROJECT_MEMORY = "room"
"""Kind under which the ledger stores projects."""
PREFILLED = "before"
"""Model version under which Label Studio stores prefilled annotations."""
_PAGE = 100
_TITLE = 50
"""Maximum length of a title in Label Studio."""
_SEQUENTIAL = "Sequential sampling"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelStudioProject:
    """Label Studio project of one annotator and batch, with its guidelines and screen versions."""

    project: int
    annotator: str
    batch: int
    owner: int
    """Number of the annotator's account."""
    guidelines_version: str
    interface_version: str
    created_at: str = ""
    """Creation time on the server, which cannot be changed; it identifies the project with its
    number.
    """
    is_new: bool = False
    """Whether the project was just created and is still empty."""

    @property
    def key(self) -> str:
        """Return the project's key in the ledger: `ANNOTATOR/BATCH`."""
        return f"{self.annotator}/{self.batch}"


def read_stored_projects(ledger: Ledger, campaign: str) -> dict[str, LabelStudioProject]:
    """Read the Label Studio projects of a campaign from the ledger, by project key."""
    projects = {}
    for key, value in ledger.memories(campaign, PROJECT_MEMORY).items():
        annotator, _, batch = key.rpartition("/")
        projects[key] = LabelStudioProject(
            annotator=annotator, batch=int(batch), **json.loads(value)
        )
    return projects


def open_annotator_project(
    client: LabelStudioClient,
    ledger: Ledger,
    campaign: Campaign,
    *,
    screen: AnnotationScreen,
    place: tuple[str, int, int],
    marked: Callable[[], Mapping[str, int]] | None = None,
) -> LabelStudioProject:
    """Return the project of an annotator and batch; create it on the server if missing.

    It is read from the ledger, found by its marker, or created, and then stored in the ledger.
    `place` is the annotator, the batch and the number of the annotator's account. `marked` is a
    cached `find_marked_projects`, for callers that open many projects.
    """
    annotator, batch, owner = place
    mark = format_project_marker(campaign.name, annotator, batch)
    known = read_stored_projects(ledger, campaign.name).get(f"{annotator}/{batch}")
    if known is not None and known.owner == owner:
        reply = client.look(f"/api/projects/{known.project}/")
        stored = reply.document() if reply.is_ok else None
        if isinstance(stored, dict):
            is_marked = str(stored.get("description") or "").endswith(mark)
            if is_marked or (known.created_at and stored.get("created_at") == known.created_at):
                return known
    by_marker = find_marked_projects(client) if marked is None else marked()
    project, is_new = by_marker.get(mark), False
    if project is None:
        settings = {
            "title": f"{campaign.name[:24]} {annotator[:16]} {batch}"[:_TITLE],
            "description": f"Made by unreel for the campaign {campaign.name}. Leave it as it is.\n{mark}",
            "label_config": screen.config,
            "expert_instruction": campaign.guidelines,
            "show_instruction": True,
            "show_skip_button": False,
            "enable_empty_annotation": False,
            "show_annotation_history": False,
            "maximum_annotations": 1,
            "sampling": _SEQUENTIAL,
            "show_collab_predictions": True,
            "evaluate_predictions_automatically": False,
        }
        project, is_new = int(client.post("/api/projects/", settings)["id"]), True
    created = client.get(f"/api/projects/{project}/")
    studio_project = LabelStudioProject(
        project=project,
        annotator=annotator,
        batch=batch,
        owner=owner,
        guidelines_version=campaign.guidelines_version,
        interface_version=campaign.interface_version,
        created_at=str(created.get("created_at", "")),
        is_new=is_new,
    )
    # A server on this machine reads the clips from the folder of the copies.
    path = "/api/storages/localfiles"
    if client.media is not None and not client.get(path, project=project):
        storage = {"project": project, "path": str(client.media), "title": "copies"}
        client.post(path, {**storage, "use_blob_urls": False})
    stored_fields = ("project", "owner", "guidelines_version", "interface_version", "created_at")
    document = {name: getattr(studio_project, name) for name in stored_fields}
    ledger.remember(campaign.name, PROJECT_MEMORY, studio_project.key, json.dumps(document))
    return studio_project


def format_project_marker(campaign: str, annotator: str, batch: int) -> str:
    """Return the marker in a project's description, by which unreel finds its project again."""
    return f"unreel:{digest('room', campaign, annotator, str(batch))[:32]}"


def find_marked_projects(client: LabelStudioClient) -> dict[str, int]:
    """Return the numbers of unreel's Label Studio projects by marker; the oldest of simultaneous pushes."""
    numbers: dict[str, int] = {}
    page, has_next = 1, True
    while has_next:
        listed = client.get("/api/projects/", page=page, page_size=_PAGE, include="id,description")
        for project in listed["results"]:
            mark = str(project.get("description") or "").rpartition("\n")[2]
            if mark.startswith("unreel:"):
                number = int(project["id"])
                numbers[mark] = min(number, numbers.get(mark, number))
        page, has_next = page + 1, bool(listed.get("next"))
    return numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorProjectLink:
    """URL of the Label Studio project of one annotator and batch, with the annotator's login."""

    annotator: str
    login: str
    batch: int
    url: str
    """URL that asks for the login first; it contains no password and no token."""


def build_studio_task_url(address: str, project: int, task: int) -> str:
    """Return the URL of one Label Studio task, for the leader of the campaign."""
    return f"{address}/projects/{project}/data?task={task}"


def list_annotator_project_links(
    ledger: Ledger, campaign: str, *, address: str
) -> list[AnnotatorProjectLink]:
    """Return the project URLs of all annotators of a campaign, sorted by name and batch."""
    ledger.campaign(campaign)
    logins = {annotator.name: annotator.email for annotator in ledger.annotators()}
    links = []
    for project in read_stored_projects(ledger, campaign).values():
        path = f"/projects/{project.project}/data?labeling=1"
        links.append(
            AnnotatorProjectLink(
                annotator=project.annotator,
                login=logins.get(project.annotator, ""),
                batch=project.batch,
                url=f"{address}/user/login/?next={quote(path, safe='/')}",
            )
        )
    return sorted(links, key=lambda link: (link.annotator, link.batch))


PUSHED = "pushed"
"""Kind under which the ledger stores pushed states."""
SETTINGS = (
    "title",
    "description",
    "label_config",
    "expert_instruction",
    "show_instruction",
    "show_skip_button",
    "enable_empty_annotation",
    "show_annotation_history",
    "maximum_annotations",
    "sampling",
    "show_collab_predictions",
    "evaluate_predictions_automatically",
    "model_version",
)
"""Settings of a project that determine what an annotator sees."""
_SIGNED = "X-Amz-Signature="


@dataclass(slots=True, kw_only=True)
class PushedProjectState:
    """Settings, tasks and prefilled annotations of a Label Studio project, as they were pushed."""

    settings: dict[str, Any]
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Data of each task, by task id."""
    marks: dict[str, str] = field(default_factory=dict)
    """Hash of the prefilled annotations of each task, by task id; tasks without any are omitted."""
    numbers: dict[str, str] = field(default_factory=dict)
    """Task id, by the number of the task on the server."""
    restored: dict[str, str] = field(default_factory=dict)
    """Server time of the restoration of each task, by task number, and of the project, under the key ""."""

    def remember(self, ledger: Ledger, campaign: str, project_key: str) -> None:
        ledger.remember(campaign, PUSHED, project_key, json.dumps(asdict(self)))

    def changed_settings(self, project: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of the settings of a Label Studio project that differ from the pushed ones."""

        def normalise(value: object) -> object:  # as Label Studio stores it
            return (value or "").strip() if isinstance(value, str | None) else value

        return tuple(
            name
            for name in SETTINGS
            if normalise(self.settings.get(name)) != normalise(project.get(name))
        )

    def find_task(self, task: Mapping[str, Any]) -> str:
        """Return a task's ledger id, by data if its number is new (then added); "" if not pushed."""
        number, data = str(task["id"]), task.get("data")
        if number not in self.numbers and isinstance(data, dict):
            id_ = str(data.get(TASK_KEY, ""))
            if id_ in self.tasks and is_same_task_data(self.tasks[id_], data):
                self.numbers[number] = id_
        return self.numbers.get(number, "")

    def find_change(self, task: Mapping[str, Any]) -> str:
        """Describe the difference between a task on the server and its pushed state; "" if there is none."""
        id_ = self.find_task(task)
        if not id_:
            return "this task was not pushed"
        if not isinstance(task.get("data"), dict) or not is_same_task_data(
            self.tasks[id_], task["data"]
        ):
            return "the data was changed"
        is_same = self.marks.get(id_, "") == hash_predictions(task.get("predictions", ()))
        return "" if is_same else "the marks were changed"


def build_pushed_project_state(
    project: Mapping[str, Any], tasks: Iterable[Mapping[str, Any]]
) -> PushedProjectState:
    """Build the state of a new project, or of one without a stored state, from the server."""
    state = PushedProjectState(settings={name: project.get(name) for name in SETTINGS})
    for task in tasks:
        id_ = str(task["data"].get(TASK_KEY, ""))
        state.tasks.setdefault(id_, dict(task["data"]))
        state.numbers[str(task["id"])] = id_
        if digest_ := hash_predictions(task.get("predictions", ())):
            state.marks[id_] = digest_
    return state


def hash_predictions(predictions: Iterable[Mapping[str, Any]]) -> str:
    """Return a hash of the annotations in a task's predictions; "" without predictions."""
    results = [p.get("result") for p in predictions]
    return digest("marks", json.dumps(results, sort_keys=True)) if results else ""


def read_pushed_project_states(ledger: Ledger, campaign: str) -> dict[str, PushedProjectState]:
    """Read the pushed states of a campaign's projects, by project key."""
    return {
        key: PushedProjectState(**json.loads(value))
        for key, value in ledger.memories(campaign, PUSHED).items()
    }


def is_same_task_data(pushed: Mapping[str, Any], current: Mapping[str, Any]) -> bool:
    """Return whether two data fields of a task are equal, apart from the signatures of signed URLs."""

    def remove_signatures(data: Mapping[str, Any]) -> dict[str, Any]:
        return {
            key: value.partition("?")[0] if isinstance(value, str) and _SIGNED in value else value
            for key, value in data.items()
        }

    return remove_signatures(pushed) == remove_signatures(current)


LISTED = ("data", "updated_at", "annotations_ids", "predictions")
"""Fields of each task that every pull reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectAlteration:
    """Counts of unexpected changes to a project (by whom is not recorded), and its restoration."""

    room: str
    settings: tuple[str, ...] = ()
    changed_tasks: int = 0
    """Number of tasks with changed data or changed prefilled annotations."""
    added_tasks: int = 0
    """Number of tasks that were not pushed; they are deleted."""
    missing_tasks: int = 0
    """Number of deleted tasks; the next push sends them again."""
    quarantined: int = 0
    """Number of quarantined answers, given since the project was last found unchanged."""
    problem: str = ""
    """Error that prevented the restoration; "" if the project was restored."""


@dataclass(slots=True)
class ProjectDifferences:
    """Differences between a Label Studio project and its pushed state, collected step by step."""

    state: PushedProjectState
    settings: tuple[str, ...] = ()
    changed: dict[str, str] = field(default_factory=dict)
    """Description of the change of each task, by task number."""
    listed: set[str] = field(default_factory=set)
    """Numbers of all tasks on the server."""

    def see_project(self, project: Mapping[str, Any]) -> None:
        """Add the names of the settings in which `project` differs from the pushed state."""
        if changed := self.state.changed_settings(project):
            self.settings = tuple(sorted({*self.settings, *changed}))

    def see_task(self, task: Mapping[str, Any]) -> None:
        number = str(task["id"])
        self.listed.add(number)
        if "data" in task and (change := self.state.find_change(task)):
            self.changed[number] = change

    def reason(self, number: str) -> str:
        """Return the reason why answers to task `number` do not count; "" if they count."""
        if self.settings:
            return f"the room's {', '.join(self.settings)} was changed"
        return self.changed.get(number, "")

    @property
    def added(self) -> list[str]:
        """Return the numbers of tasks on the server that were not pushed."""
        return [number for number in self.changed if number not in self.state.numbers]

    @property
    def missing(self) -> list[str]:
        """Return the numbers of pushed tasks that are missing on the server."""
        return sorted(set(self.state.numbers) - self.listed)

    @property
    def is_altered(self) -> bool:
        """Return whether the project or any task differs from the pushed state."""
        return bool(self.settings or self.changed or self.missing)

    def alteration(self, project: LabelStudioProject, *, quarantined: int) -> ProjectAlteration:
        return ProjectAlteration(
            room=project.key,
            settings=self.settings,
            changed_tasks=len(self.changed) - len(self.added),
            added_tasks=len(self.added),
            missing_tasks=len(self.missing),
            quarantined=quarantined,
        )


def restore_studio_project(
    client: LabelStudioClient,
    project: LabelStudioProject,
    differences: ProjectDifferences,
    prefilled_annotations: Callable[[str], Sequence[Result]],
) -> str:
    """Restore the pushed settings and tasks of a Label Studio project; return "" or the error text.

    Call it after all answers are stored in the ledger. `prefilled_annotations` returns the prefilled annotations
    of a task by its ledger id.
    """
    state = differences.state
    changed = [number for number in differences.changed if number in state.numbers]
    try:
        for number in differences.added:
            client.delete(f"/api/tasks/{number}/")
        for number in changed:
            id_ = state.numbers[number]
            client.patch(f"/api/tasks/{number}/", {"data": state.tasks[id_]})
            _restore_predictions(client, number, prefilled_annotations(id_))
        if differences.settings:
            settings = {name: state.settings.get(name, "") for name in differences.settings}
            client.patch(f"/api/projects/{project.project}/", settings)
        at = client.server_time().isoformat()
    except MachineError as error:
        return str(error)
    state.restored |= dict.fromkeys(changed if not differences.settings else ("", *changed), at)
    for number in differences.missing:
        del state.numbers[number]
    return ""


def _restore_predictions(client: LabelStudioClient, number: str, results: Sequence[Result]) -> None:
    stored: list[Mapping[str, Any]] = client.get("/api/predictions/", task=number)
    if [prediction.get("result") for prediction in stored] == ([list(results)] if results else []):
        return
    for prediction in stored:
        client.delete(f"/api/predictions/{prediction['id']}/")
    if results:
        body = {"task": int(number), "model_version": PREFILLED, "result": list(results)}
        client.post("/api/predictions/", body)
