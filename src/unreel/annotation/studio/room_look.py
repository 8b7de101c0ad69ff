"""Comparison of a project with its pushed state, and restoration."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from unreel.annotation.interfaces.answers import Result
from unreel.annotation.studio.client import StudioClient
from unreel.annotation.studio.room_state import RoomState
from unreel.annotation.studio.rooms import PREFILLED, StudioProject
from unreel.core.errors import MachineError

LISTED: Final = ("data", "updated_at", "annotations_ids", "predictions")
"""What is read of every task at every look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectAlteration:
    """Change of a project by an annotator, and the response to it.

    Label Studio 1.23 does not record which account changed a project or a task.
    """

    room: str
    settings: tuple[str, ...] = ()
    """Names of the project's settings."""
    changed_tasks: int = 0
    """Other data or other marks."""
    added_tasks: int = 0
    """Pushed by nobody; they are deleted."""
    missing_tasks: int = 0
    """Deleted by somebody; the next push sends them again."""
    quarantined: int = 0
    """Answers given since the last look at which the room was as pushed."""
    problem: str = ""
    """Why it could not be restored; "" where it was."""


@dataclass(slots=True)
class RoomLook:
    """Differences that were found so far."""

    state: RoomState
    settings: tuple[str, ...] = ()
    changed: dict[str, str] = field(default_factory=dict)
    """Words for the change of each task, by its number."""
    listed: set[str] = field(default_factory=set)
    """Numbers of all tasks that are there."""

    def see_project(self, project: Mapping[str, Any]) -> None:
        """Compare the project's settings."""
        if changed := self.state.changed_settings(project):
            self.settings = tuple(sorted({*self.settings, *changed}))

    def see_task(self, task: Mapping[str, Any]) -> None:
        """Compare a task."""
        number = str(task["id"])
        self.listed.add(number)
        if "data" in task and (change := self.state.find_change(task)):
            self.changed[number] = change

    def reason(self, number: str) -> str:
        """Words for why answers to the task cannot count; "" where they can."""
        if self.settings:
            return f"the room's {', '.join(self.settings)} was changed"
        return self.changed.get(number, "")

    @property
    def added(self) -> list[str]:
        """Numbers of tasks that were not pushed."""
        return [number for number in self.changed if number not in self.state.numbers]

    @property
    def missing(self) -> list[str]:
        """Numbers of pushed tasks that are gone."""
        return sorted(set(self.state.numbers) - self.listed)

    @property
    def is_altered(self) -> bool:
        """Return whether anything differs."""
        return bool(self.settings or self.changed or self.missing)

    def alteration(self, room: StudioProject, *, quarantined: int) -> ProjectAlteration:
        """The same as a message for the user."""
        return ProjectAlteration(
            room=room.key,
            settings=self.settings,
            changed_tasks=len(self.changed) - len(self.added),
            added_tasks=len(self.added),
            missing_tasks=len(self.missing),
            quarantined=quarantined,
        )


def restore_room(
    client: StudioClient,
    room: StudioProject,
    look: RoomLook,
    marks_of: Callable[[str], Sequence[Result]],
) -> str:
    """Put tasks and settings back; "" or why that failed. Call it when all answers are kept."""
    state = look.state
    changed = [number for number in look.changed if number in state.numbers]
    try:
        for number in look.added:
            client.delete(f"/api/tasks/{number}/")
        for number in changed:
            ours = state.numbers[number]
            client.patch(f"/api/tasks/{number}/", {"data": state.tasks[ours]})
            _restore_marks(client, number, marks_of(ours))
        if look.settings:
            wanted = {name: state.settings.get(name, "") for name in look.settings}
            client.patch(f"/api/projects/{room.project}/", wanted)
        at = client.server_time().isoformat()
    except MachineError as error:
        return str(error)
    state.restored |= dict.fromkeys(changed if not look.settings else ("", *changed), at)
    for number in look.missing:
        del state.numbers[number]
    return ""


def _restore_marks(client: StudioClient, number: str, marks: Sequence[Result]) -> None:
    found: list[Mapping[str, Any]] = client.get("/api/predictions/", task=number)
    if [each.get("result") for each in found] == ([list(marks)] if marks else []):
        return
    for each in found:
        client.delete(f"/api/predictions/{each['id']}/")
    if marks:
        body = {"task": int(number), "model_version": PREFILLED, "result": list(marks)}
        client.post("/api/predictions/", body)
