"""Ways back from a page to the tasks on the server."""

import json

from unreel.annotation.campaign import TaskAssignment
from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.reading import By, CampaignRecords
from unreel.annotation.studio.links import task_url
from unreel.annotation.studio.rooms import StudioProject, remembered_rooms


def task_links(ledger: Ledger, records: CampaignRecords, *, address: str) -> dict[By, str]:
    """The address of each judged task in its annotator's room, as far as rooms are remembered."""
    rooms = remembered_rooms(ledger, records.campaign.name)
    found: dict[By, str] = {}
    for by, record in records.standing.items():
        room = _room_of(records.assignments.get(by), rooms)
        number = _task_number(record.raw)
        if room is not None and number is not None:
            found[by] = task_url(address, room.project, number)
    return found


def _room_of(given: TaskAssignment | None, rooms: dict[str, StudioProject]) -> StudioProject | None:
    return None if given is None else rooms.get(f"{given.annotator}/{given.batch}")


def _task_number(raw: str) -> int | None:
    """The server's number of the task that an annotation belongs to."""
    try:
        told = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    number = told.get("task") if isinstance(told, dict) else None
    return number if isinstance(number, int) else None
