"""Stores of answers: in memory, in a Lance table, in SQLite and in a real PostgreSQL."""

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text

from unreel.asking.answer_store import AnswerStore, MemoryAnswerStore, QuestionClaim, StoredAnswer
from unreel.asking.answer_table import LanceAnswerStore
from unreel.asking.sql_answers import SqlAnswerStore
from unreel.core.answer import Reply
from unreel.engine.location import StorageLocation
from unreel.testing.answer_stores import AnswerStoreKit, sample_result

if TYPE_CHECKING:
    from postgres import Postgres

REPLY = Reply(text="FAKE")
RESULT = sample_result("answered", REPLY)
ANSWER = StoredAnswer(reply=REPLY, box_space="unit")
_NUMBERS = itertools.count()


class TestMemory(AnswerStoreKit):
    @pytest.fixture
    def store(self) -> AnswerStore:
        return MemoryAnswerStore()


class TestLance(AnswerStoreKit):
    @pytest.fixture
    def store(self, tmp_path: Path) -> AnswerStore:
        return LanceAnswerStore(StorageLocation(str(tmp_path)) / "answers.lance")


class TestSql(AnswerStoreKit):
    @pytest.fixture
    def store(self, open_store: Callable[..., SqlAnswerStore]) -> AnswerStore:
        return open_store()


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return str(tmp_path / "cache.sqlite")
    server: Postgres = request.getfixturevalue("postgres")
    return server.create_schema(f"answers_{next(_NUMBERS)}")


@pytest.fixture
def open_store(address: str) -> Iterator[Callable[..., SqlAnswerStore]]:
    """Open stores of one database; all are closed at the end."""
    opened: list[SqlAnswerStore] = []

    def open_one(**options: Any) -> SqlAnswerStore:
        opened.append(SqlAnswerStore(address, **options))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


def test_a_question_is_claimed_by_one_process(open_store: Callable[..., SqlAnswerStore]) -> None:
    first, second = open_store(), open_store()
    assert first.claim(RESULT.key) is QuestionClaim.OURS
    assert second.claim(RESULT.key) is QuestionClaim.BUSY
    first.store(RESULT, REPLY)
    assert second.claim(RESULT.key) == ANSWER
    assert second.claim("b") is QuestionClaim.OURS
    second.release("b")
    assert first.claim("b") is QuestionClaim.OURS


@pytest.mark.parametrize("ask_once", [False, True])
def test_the_claim_of_an_ended_process_is_found(
    open_store: Callable[..., SqlAnswerStore], *, ask_once: bool
) -> None:
    ended, alive = open_store(), open_store(ask_once=ask_once)
    assert ended.claim("a") is QuestionClaim.OURS
    assert alive.claim("a") is QuestionClaim.BUSY
    with ended.engine.begin() as connection:
        connection.execute(text("UPDATE answer_owners SET seen_at = seen_at - 60"))
    alive.change(text(f"UPDATE answer_owners SET seen_at = {alive._now} WHERE owner <> 'x'"))
    assert alive.claim("a") is QuestionClaim.BUSY
    with ended.engine.begin() as connection:
        connection.execute(text("UPDATE answer_owners SET seen_at = seen_at - 60"))
    assert alive.claim("a") is (QuestionClaim.INTERRUPTED if ask_once else QuestionClaim.OURS)
    assert alive.n_interrupted == (not ask_once)


def test_an_answer_that_comes_while_the_database_is_away_is_stored_once_it_is_back(
    postgres: "Postgres",
) -> None:
    store = SqlAnswerStore(postgres.create_schema(f"answers_{next(_NUMBERS)}"), lease_s=0.6)
    try:
        for key in (RESULT.key, "failed"):
            assert store.claim(key) is QuestionClaim.OURS
        postgres.kill()
        try:
            store.store(RESULT, REPLY)
            store.release("failed")
        finally:
            postgres.start()
        until_s = time.monotonic() + 60
        while store.find(RESULT.key) is None and time.monotonic() < until_s:
            time.sleep(0.1)
        assert store.find(RESULT.key) == ANSWER
        assert store.claim("failed") is QuestionClaim.OURS
    finally:
        store.close()
