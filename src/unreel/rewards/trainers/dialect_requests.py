"""Requests of all dialects: their bodies and their deadline."""

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from unreel.rewards.result import Reward
from unreel.rewards.service.items import RewardItem
from unreel.rewards.service.schema import Body, parse_body

if TYPE_CHECKING:
    from fastapi import Request

    from unreel.rewards.service.scoring import RewardService


async def read_body(request: "Request", model: type[Body]) -> Body:
    """Return the JSON body of a request, parsed outside of the event loop."""
    return await asyncio.to_thread(parse_body, model, await request.body())


async def score_items(
    service: "RewardService", items: Sequence[RewardItem], request: "Request"
) -> list[tuple[RewardItem, Reward]]:
    """Return the reward of each item, before the service's deadline for the request."""
    state = request.state
    left_s = max(0.0, state.began_s + service.settings.deadline_s - time.monotonic())
    scored = await service.score(items, deadline_s=left_s, token=state.token)
    return [(item, each.reward) for item, each in zip(items, scored, strict=True)]
