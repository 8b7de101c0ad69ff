"""Nothing that people said is lost or doubled when Label Studio and PostgreSQL are killed with -9.

Kills come at events, in the middle of what was begun: when the server has written a chunk of tasks and
the command has not heard of it, when PostgreSQL holds half of a transaction, when a page of answers was
read and not kept. Controls without what makes push and pull idempotent must double.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from postgres import Postgres
from studio import Studio
from studio_campaigns import PEOPLE, Prepared, answer_all, invite_people, prepare
from unreel.annotation.campaign import AnnotationInterface, Value
from unreel.annotation.campaign_push import push_assignments
from unreel.annotation.interfaces.label_studio_tasks import TASK_KEY
from unreel.annotation.ledger.connection import open_ledger
from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.studio.client import (
    LabelStudioClient,
    LabelStudioReply,
    iter_studio_project_tasks,
)
from unreel.annotation.studio.projects import read_stored_projects
from unreel.annotation.studio.pull import pull_campaign_annotations
from unreel.core.errors import MachineError
from unreel.core.settings import read_environment_settings

pytestmark = [pytest.mark.xdist_group("studio"), pytest.mark.timeout(1800)]

SLOW = read_environment_settings().slow
N_TASKS = 50 if SLOW else 5
"""Number of tasks of each interface; 3 people answer each task."""
INTERFACES = tuple(AnnotationInterface) if SLOW else tuple(AnnotationInterface)[:2]
"""The default run kills PostgreSQL while it pushes, and each server while it pulls."""
Event = Callable[[str, str], bool]


class Disturbed(LabelStudioClient):
    """A client in whose calls somebody is killed: once, behind the first call that `event` means."""

    def __init__(self, studio: Studio, kill: Callable[[], None], event: Event) -> None:
        super().__init__(studio.connection, sleep=lambda _seconds: None)
        self._kill, self._event = kill, event
        self.n_kills = 0

    def _exchange(self, method: str, path: str, **given: object) -> LabelStudioReply:
        reply = super()._exchange(method, path, **given)
        if not self.n_kills and self._event(method, path):
            self.n_kills += 1
            self._kill()
            problem, remedy = "the reply never came", "Run it again"
            raise MachineError(problem, remedy)
        return reply


def nth(n: int, method: str, ending: str) -> Event:
    """The n-th call of its kind."""
    seen = Counter[str]()

    def is_it(called: str, path: str) -> bool:
        seen["all"] += called == method and path.endswith(ending)
        return seen["all"] == n

    return is_it


@contextmanager
def killed_inside(address: str, table: str, kill: Callable[[], None]) -> Iterator[list[str]]:
    """Kill as soon as somebody is inside a transaction that writes `table`, where it is made to wait.

    The list tells at which statements.
    """
    import psycopg
    from psycopg import sql

    seen: list[str] = []
    ended = threading.Event()
    waiting = "SELECT query FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s"

    def watch() -> None:
        with psycopg.connect(address, autocommit=True) as looking:
            while not seen and not ended.is_set():
                found = looking.execute(waiting, [f"INSERT INTO%{table}%"]).fetchall()
                seen.extend(str(row[0])[:60] for row in found)
        if seen:
            kill()

    holding = psycopg.connect(address)
    holding.execute(sql.SQL("LOCK TABLE {} IN EXCLUSIVE MODE").format(sql.Identifier(table)))
    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield seen
    finally:
        ended.set()
        watching.join()
        holding.close()


def restart(server: Studio | Postgres) -> None:
    server.kill()
    server.start()


def hear(_told: object) -> None:
    pass


@pytest.fixture(scope="module")
def ledger(postgres: Postgres) -> Iterator[Ledger]:
    with open_ledger(postgres.create_database("crash_ledger")) as opened:
        yield opened


@pytest.fixture(scope="module")
def campaigns(ledger: Ledger) -> list[Prepared]:
    return [prepare(ledger, each, N_TASKS, name=f"crash-{each.value}") for each in INTERFACES]


@pytest.fixture(scope="module")
def accounts(studio: Studio) -> dict[str, int]:
    with LabelStudioClient(studio.connection) as client:
        return invite_people(studio, client)


def in_rooms(
    client: LabelStudioClient, ledger: Ledger, prepared: Prepared
) -> Counter[tuple[str, str]]:
    """How often each task lies in each annotator's room."""
    found = Counter[tuple[str, str]]()
    for room in read_stored_projects(ledger, prepared.campaign.name).values():
        for task in iter_studio_project_tasks(client, room.project, fields=("data",)):
            found[room.annotator, str(task["data"][TASK_KEY])] += 1
    return found


def once_each(prepared: Prepared) -> Counter[tuple[str, str]]:
    return Counter((person.name, task.id) for person in PEOPLE for task in prepared.tasks)


def push_until_done(
    studio: Studio, ledger: Ledger, prepared: Prepared, accounts: dict[str, int]
) -> None:
    """Run the push again as a person would, until it goes through."""
    for _ in range(5):
        with LabelStudioClient(studio.connection) as client:
            try:
                push_assignments(prepared.delivery(client, ledger, accounts), on_sent=hear)
            except MachineError:
                continue
            assert in_rooms(client, ledger, prepared) == once_each(prepared)
            return
    pytest.fail("the push never went through")


def test_what_is_pushed_while_servers_are_killed_is_there_once(
    studio: Studio,
    postgres: Postgres,
    ledger: Ledger,
    campaigns: list[Prepared],
    accounts: dict[str, int],
) -> None:
    # A project was made, or its tasks were, and the command never heard of it.
    events = [
        (partial(restart, studio), nth(2, "POST", "/api/projects/")),
        (partial(restart, studio), nth(2, "POST", "/import")),
        (partial(restart, postgres), nth(1, "POST", "/api/projects/")),
        (partial(restart, postgres), nth(3, "POST", "/import")),
    ]
    for prepared, (kill, event) in zip(campaigns, events if SLOW else (), strict=False):
        with Disturbed(studio, kill, event) as client:
            with pytest.raises(MachineError):
                push_assignments(prepared.delivery(client, ledger, accounts), on_sent=hear)
            assert client.n_kills == 1
        push_until_done(studio, ledger, prepared, accounts)
    # In the middle of the transaction that makes the tasks.
    kills = (studio.kill, postgres.kill) if SLOW else (postgres.kill,)
    for prepared, kill in zip(campaigns[-len(kills) :], kills, strict=True):
        with LabelStudioClient(studio.connection, sleep=lambda _seconds: None) as client:
            delivery = prepared.delivery(client, ledger, accounts)
            with (
                killed_inside(studio.plan.database, "task", kill) as seen,
                pytest.raises(MachineError),
            ):
                push_assignments(delivery, on_sent=hear)
        assert seen, "nobody was killed"
        (studio if kill == studio.kill else postgres).start()
        push_until_done(studio, ledger, prepared, accounts)


@pytest.fixture(scope="module")
def said(
    studio: Studio, ledger: Ledger, campaigns: list[Prepared], accounts: dict[str, int]
) -> dict[str, dict[tuple[str, str], Value]]:
    """Everybody's answers, written through the API as themselves, by campaign."""
    found = {}
    for prepared in campaigns:
        push_until_done(studio, ledger, prepared, accounts)
        found[prepared.campaign.name] = answer_all(studio, ledger, prepared)
    return found


def test_what_is_pulled_while_servers_are_killed_is_kept_once(
    studio: Studio,
    postgres: Postgres,
    ledger: Ledger,
    said: dict[str, dict[tuple[str, str], Value]],
) -> None:
    assert sum(map(len, said.values())) == 3 * len(INTERFACES) * N_TASKS

    kills = [
        (partial(restart, studio), nth(1, "GET", "/api/tasks/")),
        (partial(restart, studio), nth(3, "GET", "/api/tasks/")),
        (partial(restart, postgres), nth(1, "GET", "/api/tasks/")),
        (partial(restart, postgres), nth(2, "GET", "/api/tasks/")),
    ]
    for name, (kill, event) in zip(said, kills if SLOW else kills[:1], strict=False):
        with Disturbed(studio, kill, event) as client:
            # The reply is lost, and the next tries find the servers back.
            pull_campaign_annotations(client, ledger, name, on_project=hear)
            assert client.n_kills == 1
    # PostgreSQL dies while the ledger keeps a page.
    *_, last = said
    with LabelStudioClient(studio.connection) as client:
        address = postgres.address("crash_ledger")
        with (
            killed_inside(address, "ledger_annotations", postgres.kill) as seen,
            pytest.raises(MachineError),
        ):
            pull_campaign_annotations(client, ledger, last, on_project=hear)
        assert seen, "nobody was killed"
        postgres.start()
        for name, answers in said.items():
            pull_campaign_annotations(client, ledger, name, on_project=hear)
            assert pull_campaign_annotations(client, ledger, name, on_project=hear).new == 0
            kept = [record for _, record in ledger.records(name)]
            assert len(kept) == len(answers), "lost or doubled"
            assert {(r.annotator, r.task): r.outcome for r in kept} == answers
