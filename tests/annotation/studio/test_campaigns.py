"""What is pushed is before its annotator once, and what they say is in the ledger once."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from studio import Studio
from studio_campaigns import (
    PEOPLE,
    answer_all,
    invite_people,
    make_task,
    opinion,
    post,
    prepare,
    sign_in,
)
from unreel.annotation.campaign import (
    AnnotationInterface,
    PrefillStudyArm,
    QuarantineReason,
    ScreeningAnswer,
    SubmissionQuarantine,
    TaskAssignment,
    VoteAnswer,
)
from unreel.annotation.campaign_push import push_assignments
from unreel.annotation.interfaces.label_studio_tasks import build_label_studio_results
from unreel.annotation.ledger.connection import open_ledger
from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.studio.client import LabelStudioClient, iter_studio_project_tasks
from unreel.annotation.studio.projects import (
    find_marked_projects,
    format_project_marker,
    list_annotator_project_links,
    read_stored_projects,
)
from unreel.annotation.studio.pull import STRANGER, pull_campaign_annotations
from unreel.core.judgement import Label

SpeakAs = Callable[[str], LabelStudioClient]
pytestmark = [pytest.mark.xdist_group("studio"), pytest.mark.timeout(900)]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(str(tmp_path / "ledger.db")) as opened:
        yield opened


@pytest.fixture
def client(studio: Studio) -> Iterator[LabelStudioClient]:
    with LabelStudioClient(studio.connection) as opened:
        yield opened


@pytest.fixture
def speak_as(studio: Studio) -> Iterator[SpeakAs]:
    with ExitStack() as held:
        yield lambda name: held.enter_context(sign_in(studio, f"{name}@example.org"))


def _said(control: str, word: str) -> object:
    value = {"choices": [word]}
    return {"id": "x", "from_name": control, "to_name": "video", "type": "choices", "value": value}


def hear(_told: object) -> None:
    pass


@pytest.mark.parametrize("interface", [AnnotationInterface.TRACE, AnnotationInterface.LOCATE])
def test_everything_said_arrives_once_and_a_second_push_and_pull_change_nothing(
    studio: Studio, client: LabelStudioClient, ledger: Ledger, interface: AnnotationInterface
) -> None:
    name = f"once-{interface.value}"
    prepared = prepare(ledger, interface, 6, name=name)
    accounts = invite_people(studio, client)
    delivery = prepared.delivery(client, ledger, accounts)
    assert push_assignments(delivery, on_sent=hear).sent == 18
    again = push_assignments(delivery, on_sent=hear)
    assert (again.sent, again.there, again.altered) == (0, 18, ())
    said = answer_all(studio, ledger, prepared)
    assert pull_campaign_annotations(client, ledger, name, on_project=hear).new == 18
    assert pull_campaign_annotations(client, ledger, name, on_project=hear).new == 0
    kept = {(r.annotator, r.task): r.outcome for _, r in ledger.records(name)}
    assert kept == said
    assert all(record.lead_us == 12_500_000 for _, record in ledger.records(name))


def test_a_room_that_was_made_and_never_remembered_is_found_and_filled(
    studio: Studio, client: LabelStudioClient, ledger: Ledger, tmp_path: Path
) -> None:
    people = PEOPLE[:1]
    prepared = prepare(ledger, AnnotationInterface.REALITY, 5, name="forgotten", people=people)
    accounts = invite_people(studio, client)
    push_assignments(prepared.delivery(client, ledger, accounts), on_sent=hear)
    first = read_stored_projects(ledger, "forgotten")["ada/1"]
    number = next(iter_studio_project_tasks(client, first.project, fields=()))["id"]
    client.delete(f"/api/tasks/{number}/")
    with open_ledger(str(tmp_path / "other.db")) as fresh:
        prepare(fresh, AnnotationInterface.REALITY, 5, name="forgotten", people=people)
        pushed = push_assignments(prepared.delivery(client, fresh, accounts), on_sent=hear)
        assert (pushed.sent, pushed.there) == (1, 4)
        assert read_stored_projects(fresh, "forgotten")["ada/1"].project == first.project
    mark = format_project_marker("forgotten", "ada", 1)
    assert find_marked_projects(client)[mark] == first.project


def test_marks_are_shown_in_the_arm_prefilled_alone(
    studio: Studio, client: LabelStudioClient, ledger: Ledger
) -> None:
    prepared = prepare(ledger, AnnotationInterface.TRACE, 0, name="arms", people=PEOPLE[:2])
    marks = next(v for s in "abcdefgh" if (v := opinion(AnnotationInterface.TRACE, s)).traces)  # type: ignore[union-attr]
    task = replace(make_task(AnnotationInterface.TRACE, "arms-0"), prefill=marks)
    ledger.add_tasks("arms", [task])
    for person, arm in (("ada", PrefillStudyArm.PREFILLED), ("ben", PrefillStudyArm.BLIND)):
        given = TaskAssignment(annotator=person, task=task.id, batch=1, position=0, arm=arm)
        ledger.assign("arms", [given])
    push_assignments(prepared.delivery(client, ledger, invite_people(studio, client)), on_sent=hear)
    shown = {}
    for room in read_stored_projects(ledger, "arms").values():
        (found,) = client.get("/api/tasks/", project=room.project, fields="all")["tasks"]
        shown[room.annotator] = [mark["result"] for mark in found["predictions"]]
    assert shown["ben"] == []
    (results,) = shown["ada"]
    assert {each["from_name"] for each in results} >= {"box", "category"}


def test_an_edited_answer_is_a_second_record_of_the_same_origin(
    studio: Studio, client: LabelStudioClient, ledger: Ledger, speak_as: SpeakAs
) -> None:
    prepared = prepare(ledger, AnnotationInterface.REALITY, 1, name="edited", people=PEOPLE[:1])
    push_assignments(prepared.delivery(client, ledger, invite_people(studio, client)), on_sent=hear)
    ada = speak_as("ada")
    project = read_stored_projects(ledger, "edited")["ada/1"].project
    (shown,) = iter_studio_project_tasks(ada, project, fields=())
    first, second = (
        build_label_studio_results(VoteAnswer(label=label), prepared.tasks[0], swapped=False)
        for label in (Label.REAL, Label.GENERATED)
    )
    number = post(ada, int(shown["id"]), first)
    pull_campaign_annotations(client, ledger, "edited", on_project=hear)
    ada.patch(f"/api/annotations/{number}/", {"result": second})
    assert pull_campaign_annotations(client, ledger, "edited", on_project=hear).new == 1
    kept = [record for _, record in ledger.records("edited")]
    assert [record.outcome for record in kept] == [
        VoteAnswer(label=Label.REAL),
        VoteAnswer(label=Label.GENERATED),
    ]
    assert len({record.origin for record in kept}) == 1
    assert kept[0].submitted_us < kept[1].submitted_us


def test_what_others_write_into_a_room_counts_for_nobody(
    studio: Studio, client: LabelStudioClient, ledger: Ledger, speak_as: SpeakAs
) -> None:
    prepared = prepare(
        ledger, AnnotationInterface.SCREENING, 1, name="strangers", people=PEOPLE[:2]
    )
    accounts = invite_people(studio, client)
    push_assignments(prepared.delivery(client, ledger, accounts), on_sent=hear)
    room = read_stored_projects(ledger, "strangers")["ada/1"]
    (shown,) = iter_studio_project_tasks(client, room.project, fields=())
    ben = speak_as("ben")
    result = build_label_studio_results(
        ScreeningAnswer(keep=True), prepared.tasks[0], swapped=False
    )
    place, own = f"/api/tasks/{shown['id']}/annotations/", accounts["ada"]
    for forged in ({}, {"completed_by": own}):
        ben.post(place, {"result": result, **forged})
    data = {"video": "x", "fps": "24", "unreel_task": prepared.tasks[0].id}
    smuggled = {"data": data, "annotations": [{"result": result, "completed_by": own}]}
    ben.post(f"/api/projects/{room.project}/import", [smuggled])
    assert pull_campaign_annotations(client, ledger, "strangers", on_project=hear).new == 3
    for _, record in ledger.records("strangers"):
        assert record.annotator == STRANGER
        assert isinstance(record.outcome, SubmissionQuarantine)
        assert record.outcome.reason is QuarantineReason.NOT_THEIRS


def test_an_answer_that_somebody_else_edits_counts_no_more_and_is_still_kept(
    studio: Studio, client: LabelStudioClient, ledger: Ledger, speak_as: SpeakAs
) -> None:
    prepared = prepare(ledger, AnnotationInterface.SCREENING, 1, name="spoiled", people=PEOPLE[:2])
    push_assignments(prepared.delivery(client, ledger, invite_people(studio, client)), on_sent=hear)
    room = read_stored_projects(ledger, "spoiled")["ada/1"]
    (shown,) = iter_studio_project_tasks(client, room.project, fields=())
    keep, remove = (
        build_label_studio_results(ScreeningAnswer(keep=each), prepared.tasks[0], swapped=False)
        for each in (True, False)
    )
    number = post(speak_as("ada"), int(shown["id"]), keep)
    pull_campaign_annotations(client, ledger, "spoiled", on_project=hear)
    speak_as("ben").patch(f"/api/annotations/{number}/", {"result": remove})
    pull_campaign_annotations(client, ledger, "spoiled", on_project=hear)
    first, second = (record for _, record in ledger.records("spoiled"))
    assert (first.annotator, first.outcome) == ("ada", ScreeningAnswer(keep=True))
    assert second.annotator == STRANGER


JUNK: list[list[object]] = [
    [],
    [_said("nowhere", "keep")],
    [_said("keep", "perhaps")],
    [_said("keep", "keep"), _said("keep", "remove")],
]


def test_junk_is_kept_as_quarantined_and_stops_nothing(
    studio: Studio, client: LabelStudioClient, ledger: Ledger, speak_as: SpeakAs
) -> None:
    n = len(JUNK)
    prepared = prepare(ledger, AnnotationInterface.SCREENING, n + 1, name="junk", people=PEOPLE[:1])
    push_assignments(prepared.delivery(client, ledger, invite_people(studio, client)), on_sent=hear)
    ada = speak_as("ada")
    project = read_stored_projects(ledger, "junk")["ada/1"].project
    *places, last = (int(each["id"]) for each in iter_studio_project_tasks(ada, project, fields=()))
    for place, result in zip(places, JUNK, strict=True):
        post(ada, place, result, lead_s=-5)
    post(
        ada,
        last,
        build_label_studio_results(ScreeningAnswer(keep=True), prepared.tasks[0], swapped=False),
    )
    pulled = pull_campaign_annotations(client, ledger, "junk", on_project=hear)
    assert (pulled.new, pulled.quarantined) == (n + 1, n)
    *junk, good = (record for _, record in ledger.records("junk"))
    assert all(isinstance(record.outcome, SubmissionQuarantine) for record in junk)
    assert all(record.lead_us is None for record in junk)
    assert good.outcome == ScreeningAnswer(keep=True)


def test_links_lead_each_annotator_to_their_own_room_and_hold_no_secret(
    studio: Studio, client: LabelStudioClient, ledger: Ledger
) -> None:
    prepared = prepare(ledger, AnnotationInterface.REALITY, 1, name="links")
    push_assignments(prepared.delivery(client, ledger, invite_people(studio, client)), on_sent=hear)
    links = list_annotator_project_links(ledger, "links", address=studio.address)
    rooms = read_stored_projects(ledger, "links")
    assert [link.annotator for link in links] == ["ada", "ben", "cleo"]
    for link in links:
        own = rooms[f"{link.annotator}/1"].project
        assert link.url.endswith(f"next=/projects/{own}/data%3Flabeling%3D1")
    kept = json.loads((studio.folder / "accounts.json").read_text())
    for secret in (studio.token, *kept.values()):
        assert not any(secret in link.url for link in links)


def test_a_room_whose_mark_was_edited_away_is_kept_and_a_deleted_one_is_told_and_made_again(
    studio: Studio, client: LabelStudioClient, ledger: Ledger, speak_as: SpeakAs
) -> None:
    prepared = prepare(ledger, AnnotationInterface.SCREENING, 2, name="vandals", people=PEOPLE[:2])
    delivery = prepared.delivery(client, ledger, invite_people(studio, client))
    push_assignments(delivery, on_sent=hear)
    rooms = read_stored_projects(ledger, "vandals")
    ben = speak_as("ben")
    ben.patch(f"/api/projects/{rooms['ada/1'].project}/", {"description": "mine", "title": "mine"})
    assert push_assignments(delivery, on_sent=hear).there == 4
    assert read_stored_projects(ledger, "vandals") == rooms
    ben.delete(f"/api/projects/{rooms['ada/1'].project}/")
    assert pull_campaign_annotations(client, ledger, "vandals", on_project=hear).gone == ("ada/1",)
    again = push_assignments(delivery, on_sent=hear)
    assert (again.sent, again.there) == (2, 2)
    assert pull_campaign_annotations(client, ledger, "vandals", on_project=hear).gone == ()
