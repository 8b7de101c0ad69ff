"""Each annotator's own link: to a login and then to the next task of one room, and to nothing else."""

from dataclasses import dataclass
from urllib.parse import quote

from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.studio.projects import read_stored_projects


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorLink:
    """Link of one annotator for one batch."""

    annotator: str
    login: str
    batch: int
    url: str
    """Asks for the login first; no password and no token is in it."""


def build_project_url(address: str, project: int) -> str:
    """Return the URL that shows the tasks of a project one after the other, without a list."""
    return f"{address}/projects/{project}/data?labeling=1"


def build_task_url(address: str, project: int, task: int) -> str:
    """Return the URL of one task for the leader of the campaign."""
    return f"{address}/projects/{project}/data?task={task}"


def list_annotator_links(ledger: Ledger, campaign: str, *, address: str) -> list[AnnotatorLink]:
    """Return the links of all annotators, sorted by name and batch."""
    ledger.campaign(campaign)
    logins = {annotator.name: annotator.email for annotator in ledger.annotators()}
    found = []
    for room in read_stored_projects(ledger, campaign).values():
        place = build_project_url(address, room.project).removeprefix(address)
        found.append(
            AnnotatorLink(
                annotator=room.annotator,
                login=logins.get(room.annotator, ""),
                batch=room.batch,
                url=f"{address}/user/login/?next={quote(place, safe='/')}",
            )
        )
    return sorted(found, key=lambda link: (link.annotator, link.batch))
