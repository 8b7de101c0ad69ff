"""The cache of two services: SQLite, and a real PostgreSQL."""

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scripted import ScriptedReviewer
from unreel.rewards.service.request_items import FileBytes, RewardRequestItem
from unreel.rewards.service.scoring import RewardService
from unreel.rewards.service.settings import RewardServiceSettings
from unreel.rewards.service.store import SqlRewardStore

if TYPE_CHECKING:
    from postgres import Postgres

_NUMBERS = itertools.count()


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return str(tmp_path / "cache.sqlite")
    server: Postgres = request.getfixturevalue("postgres")
    return server.create_schema(f"rewards_{next(_NUMBERS)}")


def test_a_stored_reward_stays(address: str) -> None:
    first, second = SqlRewardStore(address), SqlRewardStore(address)
    first.write_reward("r", "{}")
    second.write_reward("r", "[]")
    assert (second.read_reward("r"), second.read_reward("s")) == ("{}", None)
    first.close()
    second.close()


def test_two_services_ask_each_question_once(
    address: str, clip_bytes: Callable[[int], bytes]
) -> None:
    reviewer = ScriptedReviewer()
    settings = RewardServiceSettings(models=[reviewer], store=address, trusted=True)
    items = [RewardRequestItem(video=FileBytes(clip_bytes(seed))) for seed in range(4)]

    async def work() -> list[Any]:
        services = [RewardService(settings) for _ in range(2)]
        try:
            scored = (
                service.score(items, deadline_s=60, token=None, work=set()) for service in services
            )
            return [reward for results in await asyncio.gather(*scored) for reward in results]
        finally:
            for service in services:
                await service.close()

    results = asyncio.run(work())
    assert all(result.reward.value is not None for result in results)
    assert len(reviewer.keys) == len({*reviewer.keys}) == 8
