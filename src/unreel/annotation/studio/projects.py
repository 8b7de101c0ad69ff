"""Projects of Label Studio, each with one annotator and one batch.

Label Studio shows all work in a project to every user and gives all the same order; so projects are
not shared. The description of a project contains a marker, by which it is found again if the
command that made it was killed before it stored its number.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from unreel.annotation.campaign import Campaign
from unreel.annotation.interfaces.screens import AnnotationScreen
from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.studio.client import StudioClient
from unreel.core.identity import digest

ROOM: Final = "room"
"""Kind of the ledger's memory of them."""
PREFILLED: Final = "before"
"""Name by which Label Studio knows marks that were there before."""
_PAGE: Final = 100
_TITLE: Final = 50
"""Label Studio takes no longer one."""
_SEQUENTIAL: Final = "Sequential sampling"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudioProject:
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
    """Nothing can be in it yet."""

    @property
    def key(self) -> str:
        """Return the project's key in the ledger: `ANNOTATOR/BATCH`."""
        return f"{self.annotator}/{self.batch}"


def read_stored_projects(ledger: Ledger, campaign: str) -> dict[str, StudioProject]:
    """Read the last stored projects of a campaign, by project key."""
    return {
        key: _read_room(key, json.loads(value))
        for key, value in ledger.memories(campaign, ROOM).items()
    }


def open_room(
    client: StudioClient,
    ledger: Ledger,
    campaign: Campaign,
    *,
    screen: AnnotationScreen,
    place: tuple[str, int, int],
    marked: Callable[[], Mapping[str, int]] | None = None,
) -> StudioProject:
    """Return the project of `place`: annotator, batch and the number of the annotator's account.

    It is read from the ledger, found by its marker, or created, and then stored. `marked` caches
    the markers for callers that open many projects.
    """
    annotator, batch, owner = place
    mark = format_project_mark(campaign.name, annotator, batch)
    known = read_stored_projects(ledger, campaign.name).get(f"{annotator}/{batch}")
    if known is not None and known.owner == owner and _is_same(client, known, mark):
        return known
    found = find_marked(client) if marked is None else marked()
    project, is_new = found.get(mark), False
    if project is None:
        settings = _build_project_settings(campaign, screen, annotator, batch)
        project, is_new = int(client.post("/api/projects/", settings)["id"]), True
    made = client.get(f"/api/projects/{project}/")
    room = StudioProject(
        project=project,
        annotator=annotator,
        batch=batch,
        owner=owner,
        guidelines_version=campaign.guidelines_version,
        interface_version=campaign.interface_version,
        created_at=str(made.get("created_at", "")),
        is_new=is_new,
    )
    _serve_media(client, room)
    ledger.remember(campaign.name, ROOM, room.key, json.dumps(_build_room_document(room)))
    return room


def _build_project_settings(
    campaign: Campaign, screen: AnnotationScreen, annotator: str, batch: int
) -> dict[str, Any]:
    """Return the project settings that determine the annotator's view."""
    mark = format_project_mark(campaign.name, annotator, batch)
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


def format_project_mark(campaign: str, annotator: str, batch: int) -> str:
    """Return the unique mark in the description of a project."""
    return f"unreel:{digest('room', campaign, annotator, str(batch))[:32]}"


def find_marked(client: StudioClient) -> dict[str, int]:
    """Return project numbers by marker; of projects with the same marker, the oldest.

    Two simultaneous pushes can create two projects with the same marker.
    """
    found: dict[str, int] = {}
    for project in _iter_projects(client):
        mark = str(project.get("description") or "").rpartition("\n")[2]
        if mark.startswith("unreel:"):
            number = int(project["id"])
            found[mark] = min(number, found.get(mark, number))
    return found


def _iter_projects(client: StudioClient) -> Iterator[Mapping[str, Any]]:
    page, path = 1, "/api/projects/"
    while True:
        listed = client.get(path, page=page, page_size=_PAGE, include="id,description")
        yield from listed["results"]
        if not listed.get("next"):
            return
        page += 1


def _is_same(client: StudioClient, room: StudioProject, mark: str) -> bool:
    """Return whether the project is the remembered one, also if its mark was edited."""
    reply = client.look(f"/api/projects/{room.project}/")
    found = reply.document() if reply.is_ok else None
    if not isinstance(found, dict):
        return False
    is_marked = str(found.get("description") or "").endswith(mark)
    return is_marked or bool(room.created_at and found.get("created_at") == room.created_at)


def _serve_media(client: StudioClient, room: StudioProject) -> None:
    """Let users of the project see the copies on the server's machine."""
    if client.media is None:
        return
    path = "/api/storages/localfiles"
    if not client.get(path, project=room.project):
        storage = {"project": room.project, "path": str(client.media), "title": "copies"}
        client.post(path, {**storage, "use_blob_urls": False})


def _build_room_document(room: StudioProject) -> dict[str, object]:
    return {
        "project": room.project,
        "owner": room.owner,
        "guidelines_version": room.guidelines_version,
        "interface_version": room.interface_version,
        "created_at": room.created_at,
    }


def _read_room(key: str, document: Mapping[str, Any]) -> StudioProject:
    annotator, _, batch = key.rpartition("/")
    return StudioProject(annotator=annotator, batch=int(batch), **document)
