"""Two annotators who try to spoil each other's work from their own browser sessions."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from annotation.browser.annotator import Annotator as Hands
from studio import Studio
from studio_campaigns import PEOPLE, Prepared, invite_people, make_task, post, prepare, sign_in
from synthesise import ClipRecipe, synthesise
from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationTask,
    PrefillStudyArm,
    QuarantineReason,
    SubmissionQuarantine,
    TaskAssignment,
    VoteAnswer,
)
from unreel.annotation.campaign_push import AssignmentPushRequest, push_assignments
from unreel.annotation.campaign_state import read_campaign_records
from unreel.annotation.interfaces.label_studio_tasks import build_label_studio_results
from unreel.annotation.ledger.connection import open_ledger
from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.studio.client import (
    LabelStudioClient,
    iter_studio_project_tasks,
    read_account_passwords,
)
from unreel.annotation.studio.projects import (
    LabelStudioProject,
    ProjectAlteration,
    hash_predictions,
    is_same_task_data,
    list_annotator_project_links,
    read_pushed_project_states,
    read_stored_projects,
)
from unreel.annotation.studio.pull import CampaignPullResult, pull_campaign_annotations
from unreel.core.judgement import Label

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("studio"), pytest.mark.timeout(600)]

NAME = "spoilers"
N_TASKS = 12
MARKED, DELETED, EDITED, DOUBLED = 8, 9, 10, 11
SPOILED = {0, 1, 2, 3, 4, 6, 7, MARKED}
"""Places of the tasks whose data or marks are changed."""
REAL = build_label_studio_results(
    VoteAnswer(label=Label.REAL), make_task(AnnotationInterface.REALITY, "any"), swapped=False
)
FAKE = build_label_studio_results(
    VoteAnswer(label=Label.GENERATED), make_task(AnnotationInterface.REALITY, "x"), swapped=False
)
_FETCH = """async ([method, path, body]) => {
  const token = document.cookie.match(/csrftoken=([^;]+)/)?.[1] ?? '';
  const headers = {'Content-Type': 'application/json', 'X-CSRFToken': token};
  const reply = await fetch(path, {method, headers, body: JSON.stringify(body)});
  return [reply.status, await reply.text()];
}"""


@dataclass
class Spoiler:
    """Somebody logged in, who sends requests from the page of Label Studio."""

    page: Any
    attempts: int = 0

    def send(self, method: str, path: str, body: object) -> None:
        """One attempt, which the server lets through."""
        status, text = self.page.evaluate(_FETCH, [method, path, body])
        assert status < 300, (method, path, status, text[:300])
        self.attempts += 1

    def spoil_tasks(
        self, project: LabelStudioProject, shown: list[Any], answer: int, owner: int
    ) -> None:
        """14 attempts on tasks and answers."""
        data = [dict(task["data"]) for task in shown]
        for place, change in (
            (0, {"video": data[1]["video"]}),
            (1, {"fps": "5"}),
            (2, data[3]),
            (3, data[2]),
            (4, {"unreel_task": data[5]["unreel_task"]}),
            (6, {"hint": "say generated"}),
        ):
            self.send("PATCH", f"/api/tasks/{shown[place]['id']}/", {"data": data[place] | change})
        added = {"task": shown[7]["id"], "model_version": "mine", "result": FAKE}
        self.send("POST", "/api/predictions/", added)
        (mark,) = shown[MARKED]["predictions"]
        self.send("PATCH", f"/api/predictions/{mark['id']}/", {"result": FAKE})
        self.send("DELETE", f"/api/tasks/{shown[DELETED]['id']}/", {})
        smuggled = {"data": data[5] | {"video": data[0]["video"]}}
        self.send("POST", f"/api/projects/{project.project}/import", [smuggled])
        forged = {"result": FAKE, "completed_by": owner}
        self.send("PATCH", f"/api/annotations/{answer}/", {"result": FAKE})
        self.send("POST", f"/api/tasks/{shown[DOUBLED]['id']}/annotations/", forged)
        ready = {"data": data[5], "annotations": [forged]}
        self.send("POST", f"/api/projects/{project.project}/import", [ready])

    def spoil_screen(self, project: LabelStudioProject, config: str) -> None:
        """7 attempts on the project."""
        flipped = config.replace("Real: a camera", "X").replace("Generated: a model made", "Real:")
        for change in (
            {"label_config": flipped.replace("X", "Generated: no camera")},
            {"expert_instruction": "Say the opposite."},
            {"show_instruction": False},
            {"show_skip_button": True},
            {"maximum_annotations": 5},
            {"sampling": "Uniform sampling"},
            {"title": "Ignore this room"},
        ):
            self.send("PATCH", f"/api/projects/{project.project}/", change)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(str(tmp_path / "ledger.db")) as opened:
        yield opened


@pytest.fixture
def client(studio: Studio) -> Iterator[LabelStudioClient]:
    with LabelStudioClient(studio.connection) as opened:
        yield opened


@pytest.fixture
def log_in(studio: Studio, chromium: Any) -> Callable[[str, str], Hands]:
    def log_in(name: str, url: str) -> Hands:
        login = f"{name}@example.org"
        hands = Hands(chromium.new_context().new_page())
        hands.log_in(url, login, read_account_passwords(studio.folder)[login])
        hands.page.wait_for_url("**/projects/**")
        return hands

    return log_in


def _hear(_told: object) -> None:
    pass


def _prepare(ledger: Ledger) -> Prepared:
    people = PEOPLE[:2]
    prepared = prepare(ledger, AnnotationInterface.REALITY, 0, name=NAME, people=people)
    tasks = [
        make_task(AnnotationInterface.REALITY, f"{NAME}-{place:02d}") for place in range(N_TASKS)
    ]
    tasks[MARKED] = replace(tasks[MARKED], prefill=VoteAnswer(label=Label.REAL))
    ledger.add_tasks(NAME, tasks)
    for person in people:
        for place, task in enumerate(tasks):
            arm = PrefillStudyArm.PREFILLED if place == MARKED else PrefillStudyArm.BLIND
            given = TaskAssignment(
                annotator=person.name, task=task.id, batch=1, position=place, arm=arm
            )
            ledger.assign(NAME, [given])
    return replace(prepared, tasks=tuple(tasks))


def _read_room(client: LabelStudioClient, project: LabelStudioProject) -> list[Any]:
    return list(iter_studio_project_tasks(client, project.project, fields=("data", "predictions")))


def _pull(
    client: LabelStudioClient, ledger: Ledger
) -> tuple[CampaignPullResult, dict[str, ProjectAlteration]]:
    pulled = pull_campaign_annotations(client, ledger, NAME, on_project=_hear)
    return pulled, {each.room: each for each in pulled.altered}


def _require_restored(
    client: LabelStudioClient, ledger: Ledger, project: LabelStudioProject
) -> None:
    """All that is in the room is what was pushed."""
    state = read_pushed_project_states(ledger, NAME)[project.key]
    assert state.changed_settings(client.get(f"/api/projects/{project.project}/")) == ()
    shown = _read_room(client, project)
    assert {str(task["id"]) for task in shown} == set(state.numbers)
    for task in shown:
        ours = state.numbers[str(task["id"])]
        assert is_same_task_data(state.tasks[ours], task["data"])
        assert hash_predictions(task["predictions"]) == state.marks.get(ours, "")


@dataclass(frozen=True)
class Scene:
    """A campaign before two people, each of them logged in twice: on the page and with a token."""

    delivery: AssignmentPushRequest
    tasks: tuple[AnnotationTask, ...]
    rooms: dict[str, LabelStudioProject]
    links: dict[str, str]
    victims: dict[str, LabelStudioClient]


@pytest.fixture
def scene(studio: Studio, client: LabelStudioClient, ledger: Ledger) -> Iterator[Scene]:
    prepared = _prepare(ledger)
    clip = synthesise(ClipRecipe(n_frames=8))
    for task in prepared.tasks:
        (studio.media / task.copies[0].location).write_bytes(clip)
    delivery = prepared.delivery(client, ledger, invite_people(studio, client))
    push_assignments(delivery, on_sent=_hear)
    rooms = {room.annotator: room for room in read_stored_projects(ledger, NAME).values()}
    links = list_annotator_project_links(ledger, NAME, address=studio.address)
    with ExitStack() as held:
        yield Scene(
            delivery,
            prepared.tasks,
            rooms,
            {link.annotator: link.url for link in links},
            {name: held.enter_context(sign_in(studio, f"{name}@example.org")) for name in rooms},
        )


def test_forty_attempts_are_noticed_and_what_was_answered_meanwhile_counts_for_nobody(
    scene: Scene, client: LabelStudioClient, ledger: Ledger, log_in: Callable[[str, str], Hands]
) -> None:
    rooms, victims = scene.rooms, scene.victims
    shown = {name: _read_room(client, room) for name, room in rooms.items()}
    first = {name: post(own, int(shown[name][EDITED]["id"]), REAL) for name, own in victims.items()}
    pulled, altered = _pull(client, ledger)
    assert (pulled.new, altered) == (2, {})

    hands = {name: log_in(name, scene.links[name]) for name in rooms}
    spoilers = {"ada": Spoiler(hands["ben"].page), "ben": Spoiler(hands["ada"].page)}
    for victim, spoiler in spoilers.items():
        owner = scene.delivery.accounts[victim]
        spoiler.spoil_tasks(rooms[victim], shown[victim], first[victim], owner)
        for task in iter_studio_project_tasks(victims[victim], rooms[victim].project, fields=()):
            if task["id"] != shown[victim][EDITED]["id"]:
                post(victims[victim], int(task["id"]), REAL, lead_s=0)
    altered = _pull(client, ledger)[1]
    for room in rooms.values():
        told = altered[room.key]
        # The smuggled task is one more; the copy of a pushed one does no harm.
        assert (told.changed_tasks, told.added_tasks, told.missing_tasks) == (len(SPOILED), 1, 1)
        assert (told.quarantined, told.problem) == (len(SPOILED) + 1, "")
        _require_restored(client, ledger, room)
    _require_counted(ledger, scene)

    for victim, spoiler in spoilers.items():
        spoiler.spoil_screen(rooms[victim], scene.delivery.screen.config)
        assert spoiler.attempts == 20
    _answer_on_screen(hands["ada"], scene.links["ada"])
    altered = _pull(client, ledger)[1]
    for room in rooms.values():
        told = altered[room.key]
        assert (len(told.settings), told.problem) == (7, "")
        _require_restored(client, ledger, room)
    assert altered["ada/1"].quarantined == 1
    hands["ada"].page.goto(scene.links["ada"])
    hands["ada"].page.get_by_text("Real: a camera filmed it").wait_for()

    pushed = push_assignments(scene.delivery, on_sent=_hear)
    assert (pushed.sent, pushed.altered) == (2, ()), "the deleted tasks are sent again"
    # Ben is asked again: one answer comes from a page that was open while the room was changed.
    for place, lead_s in ((0, 3600), (1, 0)):
        post(victims["ben"], int(shown["ben"][place]["id"]), REAL, lead_s=lead_s)
    assert _pull(client, ledger)[1] == {}
    standing = read_campaign_records(ledger, NAME).current
    assert ("ben", scene.tasks[0].id) not in standing
    assert standing["ben", scene.tasks[1].id].outcome == VoteAnswer(label=Label.REAL)


def _require_counted(ledger: Ledger, scene: Scene) -> None:
    """Honest answers to untouched tasks stand, and all others are kept with a reason."""
    records = read_campaign_records(ledger, NAME)
    counted = {scene.tasks[place].id for place in (5, EDITED, DOUBLED)}
    for name in scene.rooms:
        standing = {task: r.outcome for (who, task), r in records.current.items() if who == name}
        assert standing == dict.fromkeys(counted, VoteAnswer(label=Label.REAL))
    reasons = Counter(
        record.outcome.reason
        for record in records.quarantined
        if isinstance(record.outcome, SubmissionQuarantine)
    )
    assert reasons == {
        QuarantineReason.TAMPERED: 2 * (len(SPOILED) + 1),
        # Edited, sent and imported in another's name.
        QuarantineReason.NOT_THEIRS: 2 * 3,
    }


def _answer_on_screen(hands: Hands, link: str) -> None:
    """Choose what stands first on the flipped screen, and send it."""
    hands.page.goto(link)
    hands.page.get_by_text("Generated: no camera").wait_for()
    hands.press("1")
    hands.submit()
