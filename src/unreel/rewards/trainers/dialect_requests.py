"""Requests of all dialects: their bodies, their limits and their deadline."""

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import BaseModel, ValidationError

from unreel.rewards.result import Reward
from unreel.rewards.service.items import RewardItem
from unreel.rewards.service.limits import RequestRefusedError

if TYPE_CHECKING:
    from fastapi import Request

    from unreel.rewards.service.scoring import RewardService

Body = TypeVar("Body", bound=BaseModel)
INVALID: Final = 422


async def read_body(request: "Request", model: type[Body]) -> Body:
    """Return the JSON body of a request, parsed outside of the event loop.

    Raises:
        RequestRefusedError: The body has another form.
    """
    body = await request.body()
    try:
        return await asyncio.to_thread(model.model_validate_json, body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        message = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise RequestRefusedError(INVALID, "invalid", message) from None


def require_few(n_videos: int, service: "RewardService") -> None:
    """Raise `RequestRefusedError` for more videos than the service accepts in a request."""
    most = service.settings.max_items
    if n_videos > most:
        message = f"{n_videos} videos; at most {most} are accepted. Send fewer at a time"
        raise RequestRefusedError(INVALID, "invalid", message)


async def score_items(
    service: "RewardService", items: Sequence[RewardItem], request: "Request"
) -> list[tuple[RewardItem, Reward]]:
    """Return the reward of each item, before the service's deadline for the request."""
    state = request.state
    left_s = max(0.0, state.began_s + service.settings.deadline_s - time.monotonic())
    scored = await service.score(items, deadline_s=left_s, token=state.token)
    return [(item, each.reward) for item, each in zip(items, scored, strict=True)]
