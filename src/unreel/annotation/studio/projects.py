"""Label Studio projects, one for each annotator and batch, and the URLs at which they are opened."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from unreel.annotation.campaign import Campaign
from unreel.annotation.interfaces.screens import AnnotationScreen
from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.studio.client import LabelStudioClient
from unreel.core.content_ids import digest

ROOM = "room"
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
    return {
        key: _parse_stored_project(key, json.loads(value))
        for key, value in ledger.memories(campaign, ROOM).items()
    }


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

    Args:
        client: Label Studio.
        ledger: Ledger of the campaign.
        campaign: Campaign of the project.
        screen: Annotation screen of the project.
        place: Annotator, batch and the number of the annotator's account.
        marked: Cached `find_marked_projects`, for callers that open many projects.
    """
    annotator, batch, owner = place
    mark = format_project_marker(campaign.name, annotator, batch)
    known = read_stored_projects(ledger, campaign.name).get(f"{annotator}/{batch}")
    if known is not None and known.owner == owner and _is_same_project(client, known, mark):
        return known
    by_marker = find_marked_projects(client) if marked is None else marked()
    project, is_new = by_marker.get(mark), False
    if project is None:
        settings = _build_project_settings(campaign, screen, annotator, batch)
        project, is_new = int(client.post("/api/projects/", settings)["id"]), True
    created = client.get(f"/api/projects/{project}/")
    room = LabelStudioProject(
        project=project,
        annotator=annotator,
        batch=batch,
        owner=owner,
        guidelines_version=campaign.guidelines_version,
        interface_version=campaign.interface_version,
        created_at=str(created.get("created_at", "")),
        is_new=is_new,
    )
    _add_media_storage(client, room)
    ledger.remember(
        campaign.name,
        ROOM,
        room.key,
        json.dumps(
            {
                "project": room.project,
                "owner": room.owner,
                "guidelines_version": room.guidelines_version,
                "interface_version": room.interface_version,
                "created_at": room.created_at,
            }
        ),
    )
    return room


def _build_project_settings(
    campaign: Campaign, screen: AnnotationScreen, annotator: str, batch: int
) -> dict[str, Any]:
    mark = format_project_marker(campaign.name, annotator, batch)
    return {
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


def format_project_marker(campaign: str, annotator: str, batch: int) -> str:
    """Return the marker in a project's description, by which unreel finds its project again."""
    return f"unreel:{digest('room', campaign, annotator, str(batch))[:32]}"


def find_marked_projects(client: LabelStudioClient) -> dict[str, int]:
    """Return the numbers of unreel's Label Studio projects by marker; the oldest of simultaneous pushes."""
    numbers: dict[str, int] = {}
    for project in _iter_projects(client):
        mark = str(project.get("description") or "").rpartition("\n")[2]
        if mark.startswith("unreel:"):
            number = int(project["id"])
            numbers[mark] = min(number, numbers.get(mark, number))
    return numbers


def _iter_projects(client: LabelStudioClient) -> Iterator[Mapping[str, Any]]:
    page, path = 1, "/api/projects/"
    while True:
        listed = client.get(path, page=page, page_size=_PAGE, include="id,description")
        yield from listed["results"]
        if not listed.get("next"):
            return
        page += 1


def _is_same_project(client: LabelStudioClient, project: LabelStudioProject, mark: str) -> bool:
    """Return whether the project on the server is the stored one, by its marker or creation time."""
    reply = client.look(f"/api/projects/{project.project}/")
    stored = reply.document() if reply.is_ok else None
    if not isinstance(stored, dict):
        return False
    is_marked = str(stored.get("description") or "").endswith(mark)
    return is_marked or bool(project.created_at and stored.get("created_at") == project.created_at)


def _add_media_storage(client: LabelStudioClient, project: LabelStudioProject) -> None:
    """Give the project access to the folder of clip copies, if the server runs locally."""
    if client.media is None:
        return
    path = "/api/storages/localfiles"
    if not client.get(path, project=project.project):
        storage = {"project": project.project, "path": str(client.media), "title": "copies"}
        client.post(path, {**storage, "use_blob_urls": False})


def _parse_stored_project(key: str, document: Mapping[str, Any]) -> LabelStudioProject:
    annotator, _, batch = key.rpartition("/")
    return LabelStudioProject(annotator=annotator, batch=int(batch), **document)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorProjectLink:
    """URL of the Label Studio project of one annotator and batch, with the annotator's login."""

    annotator: str
    login: str
    batch: int
    url: str
    """URL that asks for the login first; it contains no password and no token."""


def build_studio_project_url(address: str, project: int) -> str:
    """Return the URL at which an annotator labels the tasks of a project one after the other."""
    return f"{address}/projects/{project}/data?labeling=1"


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
        path = build_studio_project_url(address, project.project).removeprefix(address)
        links.append(
            AnnotatorProjectLink(
                annotator=project.annotator,
                login=logins.get(project.annotator, ""),
                batch=project.batch,
                url=f"{address}/user/login/?next={quote(path, safe='/')}",
            )
        )
    return sorted(links, key=lambda link: (link.annotator, link.batch))
