"""Campaigns on a real Label Studio, and annotators who answer through its API as themselves."""

import random
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx2

from studio import Studio
from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationTask,
    Annotator,
    AnnotatorClipCopy,
    Campaign,
    PassFailAnswer,
    PreferenceAnswer,
    RatingAnswer,
    ScreeningAnswer,
    TaskAssignment,
    TraceAnswer,
    Value,
    VoteAnswer,
)
from unreel.annotation.campaign_push import AssignmentPushRequest
from unreel.annotation.interfaces.label_studio_tasks import (
    TASK_KEY,
    AnnotationScreen,
    build_label_studio_results,
    get_annotation_screen,
)
from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.studio.client import (
    LabelStudioClient,
    LabelStudioConnection,
    create_annotator_accounts,
    iter_studio_project_tasks,
    read_account_passwords,
)
from unreel.annotation.studio.projects import read_stored_projects
from unreel.core.box import Box
from unreel.core.content_ids import digest
from unreel.core.judgement import Label, Rating
from unreel.core.safe_names import read_clip_id
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace
from unreel.core.verdict import Position

PEOPLE = tuple(Annotator(name, f"{name}@example.org") for name in ("ada", "ben", "cleo"))


@dataclass(frozen=True)
class Prepared:
    """A campaign of the ledger, ready to be pushed."""

    campaign: Campaign
    screen: AnnotationScreen
    tasks: tuple[AnnotationTask, ...]

    def delivery(
        self, client: LabelStudioClient, ledger: Ledger, accounts: dict[str, int]
    ) -> AssignmentPushRequest:
        return AssignmentPushRequest(
            client=client,
            ledger=ledger,
            campaign=self.campaign,
            screen=self.screen,
            accounts=accounts,
            find_urls=lambda task: [
                f"/data/local-files/?d=clips/{c.location}" for c in task.copies
            ],
        )


def prepare(
    ledger: Ledger,
    interface: AnnotationInterface,
    n: int,
    *,
    name: str,
    people: Sequence[Annotator] = PEOPLE,
) -> Prepared:
    """`n` tasks, each before all of `people`, in an order of their own."""
    question = "Does the dog keep four legs?" if interface is AnnotationInterface.PASS_FAIL else ""
    screen = get_annotation_screen(interface, question=question)
    campaign = Campaign(
        name=name,
        interface=interface,
        benchmark="drawn",
        overlap=len(people),
        guidelines=screen.guidelines,
        interface_version=screen.version,
    )
    tasks = tuple(make_task(interface, f"{name}-{number:05d}") for number in range(n))
    ledger.enlist(people)
    ledger.open_campaign(campaign)
    ledger.add_tasks(name, tasks)
    ledger.assign(name, assignments(tasks, people))
    return Prepared(campaign, screen, tasks)


def make_task(interface: AnnotationInterface, name: str) -> AnnotationTask:
    names = (name,) if interface.n_clips == 1 else (f"{name}-a", f"{name}-b")
    copies = tuple(
        AnnotatorClipCopy(
            clip=read_clip_id(digest("clip", each), "a test"),
            location=f"{each}.mp4",
            rate=Fraction(30000, 1001),
            n_frames=60,
            width=320,
            height=180,
        )
        for each in names
    )
    return AnnotationTask(names=names, copies=copies)


def assignments(
    tasks: Sequence[AnnotationTask], people: Sequence[Annotator]
) -> Iterator[TaskAssignment]:
    for seed, person in enumerate(people):
        order = random.Random(seed).sample(tasks, len(tasks))
        for position, task in enumerate(order):
            yield TaskAssignment(
                annotator=person.name,
                task=task.id,
                batch=1,
                position=position,
                swapped=len(task.copies) == 2 and bool(position % 2),
            )


def opinion(interface: AnnotationInterface, seed: str) -> Value:
    """What somebody says of a task: any value, the same for the same seed."""
    chance = random.Random(seed)
    good = chance.random() < 0.5
    match interface:
        case AnnotationInterface.SCREENING:
            return ScreeningAnswer(keep=good)
        case AnnotationInterface.TRACE | AnnotationInterface.LOCATE:
            return _traced(chance) if good else TraceAnswer(traces=(), label=Label.REAL)
        case AnnotationInterface.REALISM:
            rating = Rating(score=chance.randint(1, 5), problem="it melts", adherence="as asked")
            return RatingAnswer(rating=rating if good else None)
        case AnnotationInterface.PREFERENCE:
            return PreferenceAnswer(better=Position.FIRST if good else Position.SECOND)
        case AnnotationInterface.REALITY:
            return VoteAnswer(label=Label.REAL if good else Label.GENERATED)
        case AnnotationInterface.PASS_FAIL:
            return PassFailAnswer(passed=good)


def _traced(chance: random.Random) -> TraceAnswer:
    left = chance.randint(0, 3) / 4
    box = Box(left, 0.25, left + 0.25, 0.75)
    copy = make_task(AnnotationInterface.TRACE, "any").copies[0]
    first, last = sorted(chance.sample(range(60), 2))
    start, end = copy.at_us(first), copy.at_us(last + 1)
    trace = Trace(
        span=TimeSpan(start, end),
        track=(BoxAt(start, box), BoxAt(copy.at_us(last), box)),
        categories=frozenset({chance.choice(list(Category))}),
        explanation="it appears from nowhere",
    )
    return TraceAnswer(traces=(trace,), label=Label.GENERATED)


def sign_in(studio: Studio, login: str) -> LabelStudioClient:
    """A client that speaks as the annotator, by the password that was made for them."""
    return sign_in_at(studio.address, studio.folder, login)


def sign_in_at(address: str, folder: Path, login: str) -> LabelStudioClient:
    """The same at a server by its address and the folder of its state."""
    password = read_account_passwords(folder)[login]
    with httpx2.Client(base_url=address, timeout=120, trust_env=False) as browser:
        browser.get("/user/login/")
        form = {"email": login, "password": password}
        form["csrfmiddlewaretoken"] = browser.cookies["csrftoken"]
        assert browser.post("/user/login/", data=form).status_code == 302, "the login is refused"
        token = browser.get("/api/current-user/token").json()["token"]
    return LabelStudioClient(LabelStudioConnection(address=address, token=token))


def invite_people(
    studio: Studio, client: LabelStudioClient, people: Iterable[Annotator] = PEOPLE
) -> dict[str, int]:
    return create_annotator_accounts(client, people, folder=studio.folder)


def answer_all(
    studio: Studio, ledger: Ledger, prepared: Prepared, *, threads: int = 2
) -> dict[tuple[str, str], Value]:
    """Everybody answers every task of their rooms through the API as themselves; what they said."""
    said: dict[tuple[str, str], Value] = {}
    tasks = {task.id: task for task in prepared.tasks}
    swapped = {(a.annotator, a.task): a.swapped for a in ledger.assignments(prepared.campaign.name)}
    waiting: list[tuple[LabelStudioClient, int, list[dict[str, Any]]]] = []
    held = ExitStack()
    for room in read_stored_projects(ledger, prepared.campaign.name).values():
        own = held.enter_context(sign_in(studio, f"{room.annotator}@example.org"))
        for found in iter_studio_project_tasks(own, room.project, fields=("data",)):
            ours = str(found["data"][TASK_KEY])
            value = opinion(prepared.campaign.interface, f"{room.annotator} {ours}")
            said[room.annotator, ours] = value
            result = build_label_studio_results(
                value,
                tasks[ours],
                swapped=swapped[room.annotator, ours],
                interface=prepared.campaign.interface,
            )
            waiting.append((own, int(found["id"]), result))
    with held, ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda one: post(*one), waiting))
    return said


def post(client: LabelStudioClient, task: int, result: object, *, lead_s: float = 12.5) -> int:
    """One annotation, as a click on Submit sends it; its number."""
    body = {"result": result, "lead_time": lead_s}
    return int(client.post(f"/api/tasks/{task}/annotations/", body)["id"])
