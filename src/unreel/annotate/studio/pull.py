"""Reads what annotators saved into the ledger: what is new since the last time, each annotation once.

Label Studio lets everybody write everywhere and stores whatever it is sent. So a room has one owner, an
annotation of anybody else in it is no judgement, and every result is read through the same door as a
stranger's file.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from unreel.annotate.campaign import Assignment, Campaign, Interface, Task
from unreel.annotate.interfaces.data import TASK_KEY
from unreel.annotate.interfaces.results import read_result
from unreel.annotate.judgements import Quarantined, QuarantineReason, Record, Value
from unreel.annotate.ledger.ledger import Ledger
from unreel.annotate.studio.client import NOT_FOUND, StudioClient
from unreel.annotate.studio.reading import read_tasks
from unreel.annotate.studio.rooms import Room, remembered_rooms, room_mark

CURSOR: Final = "cursor"
"""Kind of the ledger's memory of how far each room was read."""
STRANGER: Final = "somebody-else"
"""Stands for whoever wrote into a room that is not theirs, so that it counts against nobody."""
_LOOK_BACK: Final = timedelta(minutes=10)
"""A change is stamped before it can be seen, so a little is read again."""
_AT_ONCE: Final = 500
_AUTHORS: Final = ("completed_by", "updated_by")
"""Who an annotation says to be by, which anybody may write, and by whom the server was sent it last."""
_KEPT: Final = ("id", "task", *_AUTHORS, "result", "was_cancelled", "created_at", "updated_at")
_FIELDS: Final = ("data", "annotations", "lead_time", *_KEPT[1:])
_LONGEST_S: Final = 10**9
_LONGEST_ID: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulled:
    """Result of a pull."""

    rooms: int
    seen: int
    """Annotations that the server showed."""
    new: int
    quarantined: int
    """Of those seen."""
    gone: tuple[str, ...] = ()
    """Rooms that were deleted on the server; what was pulled of them before is kept."""


@dataclass(frozen=True, slots=True)
class _Desk:
    """State of a project before its annotations are read."""

    campaign: Campaign
    room: Room
    tasks: Mapping[str, Task]
    assigned: Mapping[str, Assignment]


def pull_campaign(
    client: StudioClient, ledger: Ledger, campaign: str, *, heard: Callable[[Pulled], None]
) -> Pulled:
    """Keep every annotation of the campaign's rooms that the ledger lacks.

    It may be killed at any moment and run again: what is kept is kept, and nothing is kept twice.

    Raises:
        MachineError: The server is away or refuses.
    """
    known = ledger.campaign(campaign)
    tasks = {task.id: task for task in ledger.tasks(campaign)}
    cursors = ledger.memories(campaign, CURSOR)
    total = Pulled(rooms=0, seen=0, new=0, quarantined=0)
    for key, room in sorted(remembered_rooms(ledger, campaign).items()):
        given = ledger.assignments(campaign, annotator=room.annotator)
        assigned = {each.task: each for each in given if each.batch == room.batch}
        desk = _Desk(known, room, tasks, assigned)
        if client.look(f"/api/projects/{room.project}/").status == NOT_FOUND:
            total = replace(total, gone=(*total.gone, key))
            continue
        total = _pull_room(client, ledger, desk, since=cursors.get(key, ""), total=total)
        heard(total)
    return total


def _pull_room(
    client: StudioClient, ledger: Ledger, desk: _Desk, *, since: str, total: Pulled
) -> Pulled:
    room, newest, waiting = desk.room, since, list[Record]()
    total = replace(total, rooms=total.rooms + 1)
    behind = _before(since) if since else ""
    for found in read_tasks(client, room.project, fields=_FIELDS, since=behind):
        newest = max(newest, str(found.get("updated_at") or ""))
        waiting += _records(found, desk)
        if len(waiting) >= _AT_ONCE:
            total, waiting = _keep(ledger, waiting, total), []
    total = _keep(ledger, waiting, total)
    if newest != since:
        # Behind the records: a kill between the two reads them again.
        ledger.remember(desk.campaign.name, CURSOR, room.key, newest)
    return total


def _keep(ledger: Ledger, records: list[Record], total: Pulled) -> Pulled:
    held = sum(isinstance(record.outcome, Quarantined) for record in records)
    return replace(
        total,
        seen=total.seen + len(records),
        new=total.new + (ledger.append(records) if records else 0),
        quarantined=total.quarantined + held,
    )


def _records(found: Mapping[str, Any], desk: _Desk) -> Iterator[Record]:
    data = found.get("data")
    ours = str(data.get(TASK_KEY, ""))[:_LONGEST_ID] if isinstance(data, dict) else ""
    if "annotations" not in found:
        # The server has more to say of this task than a reply may hold.
        note = {"id": f"task-{found['id']}", "created_at": "", "updated_at": ""}
        outcome = Quarantined(QuarantineReason.TOO_LARGE, "the task's annotations are too much")
        yield _record(note, ours, desk, outcome=outcome)
        return
    for annotation in found["annotations"]:
        if isinstance(annotation, dict) and "id" in annotation:
            yield _record(annotation, ours, desk, outcome=_outcome(annotation, ours, desk))


def _record(
    annotation: Mapping[str, Any], ours: str, desk: _Desk, *, outcome: Value | Quarantined
) -> Record:
    room, campaign = desk.room, desk.campaign.name
    mark = room_mark(campaign, room.annotator, room.batch)
    kept = {name: annotation.get(name) for name in (*_KEPT, "lead_time")}
    return Record(
        campaign=campaign,
        annotator=STRANGER if _is_strangers(outcome) else room.annotator,
        task=ours or "unknown",
        origin=f"{mark}/{annotation['id']}@{annotation.get('created_at')}",
        guidelines_version=room.guidelines_version,
        interface_version=room.interface_version,
        submitted_us=_us(annotation.get("updated_at")),
        lead_us=_lead_us(annotation.get("lead_time")),
        raw=json.dumps(kept, sort_keys=True),
        outcome=outcome,
    )


def _outcome(annotation: Mapping[str, Any], ours: str, desk: _Desk) -> Value | Quarantined:
    assignment = desk.assigned.get(ours)
    for author in _AUTHORS:
        if annotation.get(author) != desk.room.owner:
            detail = f"{author} is {annotation.get(author)!a}, not account {desk.room.owner}"[:200]
            return Quarantined(QuarantineReason.NOT_THEIRS, detail)
    if assignment is None:
        detail = f"task {ours!a} was never given to {desk.room.annotator}"
        return Quarantined(QuarantineReason.NOT_ASSIGNED, detail)
    if annotation.get("was_cancelled"):
        return Quarantined(QuarantineReason.MISSING, "the task was skipped")
    interface: Interface = desk.campaign.interface
    return read_result(
        interface, annotation.get("result"), desk.tasks[ours], swapped=assignment.swapped
    )


def _is_strangers(outcome: Value | Quarantined) -> bool:
    return isinstance(outcome, Quarantined) and outcome.reason is QuarantineReason.NOT_THEIRS


def _us(stamp: object) -> int:
    """Microseconds since 1970; 0 where the server gives none."""
    try:
        passed = datetime.fromisoformat(str(stamp)) - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, TypeError):
        return 0
    return passed // timedelta(microseconds=1)


def _lead_us(seconds: object) -> int | None:
    if not isinstance(seconds, int | float) or not math.isfinite(seconds):
        return None
    return round(seconds * 1_000_000) if 0 <= seconds <= _LONGEST_S else None


def _before(stamp: str) -> str:
    """A little before `stamp`, as the server's filter takes it."""
    try:
        at = datetime.fromisoformat(stamp) - _LOOK_BACK
    except ValueError:
        return ""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
