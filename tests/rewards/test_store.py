"""The cache with two processes: SQLite, and a real PostgreSQL."""

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text

from scripted import ScriptedReviewer
from unreel.rewards.model import CachedAnswer, QuestionClaimState
from unreel.rewards.service.request_items import FileBytes, RewardRequestItem
from unreel.rewards.service.scoring import RewardService
from unreel.rewards.service.settings import RewardServiceSettings
from unreel.rewards.service.store import SqlRewardStore

if TYPE_CHECKING:
    from postgres import Postgres

ANSWER = CachedAnswer("FAKE", "pixel")
_NUMBERS = itertools.count()


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return str(tmp_path / "cache.sqlite")
    server: Postgres = request.getfixturevalue("postgres")
    return server.create_schema(f"rewards_{next(_NUMBERS)}")


@pytest.fixture
def open_store(address: str) -> Iterator[Callable[..., SqlRewardStore]]:
    """Open stores of one database; all are closed at the end."""
    opened: list[SqlRewardStore] = []

    def open_one(**options: Any) -> SqlRewardStore:
        opened.append(SqlRewardStore(address, **options))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


def test_a_question_is_claimed_by_one_process(open_store: Callable[..., SqlRewardStore]) -> None:
    first, second = open_store(), open_store()
    assert first.claim("a") is QuestionClaimState.OURS
    assert second.claim("a") is QuestionClaimState.BUSY
    first.store("a", ANSWER)
    assert second.claim("a") == ANSWER
    assert second.claim("b") is QuestionClaimState.OURS
    second.release("b")
    assert first.claim("b") is QuestionClaimState.OURS
    first.write_reward("r", "{}")
    second.write_reward("r", "[]")
    assert (second.read_reward("r"), second.read_reward("s")) == ("{}", None)


@pytest.mark.parametrize("ask_once", [False, True])
def test_the_claim_of_an_ended_process_is_found(
    open_store: Callable[..., SqlRewardStore], *, ask_once: bool
) -> None:
    ended, alive = open_store(), open_store(ask_once=ask_once)
    assert ended.claim("a") is QuestionClaimState.OURS
    assert alive.claim("a") is QuestionClaimState.BUSY
    with ended._engine.begin() as connection:
        connection.execute(text("UPDATE reward_owners SET seen_at = seen_at - 60"))
    alive._change(text(f"UPDATE reward_owners SET seen_at = {alive._now} WHERE owner <> 'x'"))
    assert alive.claim("a") is QuestionClaimState.BUSY
    with ended._engine.begin() as connection:
        connection.execute(text("UPDATE reward_owners SET seen_at = seen_at - 60"))
    assert alive.claim("a") is (
        QuestionClaimState.INTERRUPTED if ask_once else QuestionClaimState.OURS
    )
    assert alive.n_interrupted == (not ask_once)


def test_the_claim_of_an_answer_that_the_database_rejects_is_ended(
    open_store: Callable[..., SqlRewardStore],
) -> None:
    store = open_store()
    assert store.claim("a") is QuestionClaimState.OURS
    store.store("a", CachedAnswer("\ud800"))  # no UTF-8
    assert store.claim("a") is QuestionClaimState.OURS


def test_an_answer_that_comes_while_the_database_is_away_is_stored_once_it_is_back(
    postgres: "Postgres",
) -> None:
    store = SqlRewardStore(postgres.create_schema(f"rewards_{next(_NUMBERS)}"), lease_s=0.6)
    try:
        for key in ("rejected", "answered", "failed"):
            assert store.claim(key) is QuestionClaimState.OURS
        postgres.kill()
        try:
            store.store("rejected", CachedAnswer("\0"))
            store.store("answered", ANSWER)
            store.release("failed")
        finally:
            postgres.start()
        until_s = time.monotonic() + 60
        while store.claim("failed") is QuestionClaimState.BUSY and time.monotonic() < until_s:
            time.sleep(0.1)
        assert store.claim("answered") == ANSWER
        assert store.claim("rejected") is QuestionClaimState.OURS
        store.release("failed")
        assert store.claim("failed") is QuestionClaimState.OURS
    finally:
        store.close()


def test_two_services_ask_each_question_once(
    address: str, clip_bytes: Callable[[int], bytes]
) -> None:
    reviewer = ScriptedReviewer()
    settings = RewardServiceSettings(models=[reviewer], store=address, trusted=True)
    services = [RewardService(settings) for _ in range(2)]
    items = [RewardRequestItem(video=FileBytes(clip_bytes(seed))) for seed in range(4)]

    async def work() -> list[Any]:
        scored = (service.score(items, deadline_s=60, token=None) for service in services)
        return [reward for results in await asyncio.gather(*scored) for reward in results]

    try:
        results = asyncio.run(work())
    finally:
        for service in services:
            service.close()
    assert all(result.reward.value is not None for result in results)
    assert len(reviewer.keys) == len({*reviewer.keys}) == 8
