"""A room as it was pushed: settings of its project and data of its tasks, kept in the ledger.

Label Studio has no roles, so that any account may change a project or a task. Whatever is read from a
room is compared with this first.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from unreel.annotation.interfaces.data import TASK_KEY
from unreel.annotation.ledger.ledger import Ledger
from unreel.core.identity import digest

PUSHED: Final = "pushed"
"""Kind of the ledger's memory of them."""
SETTINGS: Final = (
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
"""Settings of a project that decide what an annotator sees."""
_SIGNED: Final = "X-Amz-Signature="


@dataclass(slots=True, kw_only=True)
class RoomState:
    """A room as it was pushed."""

    settings: dict[str, Any]
    """Of the project."""
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Data of each task by its id in the ledger."""
    marks: dict[str, str] = field(default_factory=dict)
    """Digest of the marks that a task shows beforehand, by its id; none for a task without any."""
    numbers: dict[str, str] = field(default_factory=dict)
    """The task's id by its number on the server."""
    restored: dict[str, str] = field(default_factory=dict)
    """When the server said that a task (by its number) or the project ("") was restored."""

    def remember(self, ledger: Ledger, campaign: str, room: str) -> None:
        """Keep it in the ledger."""
        ledger.remember(campaign, PUSHED, room, json.dumps(asdict(self)))

    def changed_settings(self, project: Mapping[str, Any]) -> tuple[str, ...]:
        """Names of settings that differ from those pushed."""
        return tuple(
            name
            for name in SETTINGS
            if _plain(self.settings.get(name)) != _plain(project.get(name))
        )

    def find_task(self, task: Mapping[str, Any]) -> str:
        """Return our id of a task of the server; "" if it was not pushed.

        An unknown number is added if its data equal pushed data.
        """
        number, data = str(task["id"]), task.get("data")
        if number not in self.numbers and isinstance(data, dict):
            ours = str(data.get(TASK_KEY, ""))
            if ours in self.tasks and same_data(self.tasks[ours], data):
                self.numbers[number] = ours
        return self.numbers.get(number, "")

    def find_change(self, task: Mapping[str, Any]) -> str:
        """Return a description of the difference between a task and its pushed state; "" if there is none."""
        ours = self.find_task(task)
        if not ours:
            return "this task was not pushed"
        if not isinstance(task.get("data"), dict) or not same_data(self.tasks[ours], task["data"]):
            return "its data was changed"
        is_same = self.marks.get(ours, "") == marks_digest(task.get("predictions", ()))
        return "" if is_same else "its marks were changed"


def adopt_room(project: Mapping[str, Any], tasks: Iterable[Mapping[str, Any]]) -> RoomState:
    """Return the present state of a new project, or of one that an earlier release pushed."""
    state = RoomState(settings={name: project.get(name) for name in SETTINGS})
    for task in tasks:
        ours = str(task["data"].get(TASK_KEY, ""))
        state.tasks.setdefault(ours, dict(task["data"]))
        state.numbers[str(task["id"])] = ours
        if digest_ := marks_digest(task.get("predictions", ())):
            state.marks[ours] = digest_
    return state


def marks_digest(predictions: Iterable[Mapping[str, Any]]) -> str:
    """Digest of the marks in a task's predictions; "" where there are none."""
    results = [each.get("result") for each in predictions]
    return digest("marks", json.dumps(results, sort_keys=True)) if results else ""


def room_states(ledger: Ledger, campaign: str) -> dict[str, RoomState]:
    """States of a campaign's rooms by their keys."""
    return {
        key: RoomState(**json.loads(value))
        for key, value in ledger.memories(campaign, PUSHED).items()
    }


def same_data(pushed: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Equality of two tasks' data; links that a store signed may have another signature."""
    return {k: _unsigned(v) for k, v in pushed.items()} == {
        k: _unsigned(v) for k, v in found.items()
    }


def _unsigned(value: object) -> object:
    return value.partition("?")[0] if isinstance(value, str) and _SIGNED in value else value


def _plain(value: object) -> object:
    """A setting as Label Studio keeps it: texts without space around them, and none for an empty one."""
    return (value or "").strip() if isinstance(value, str | None) else value
