"""Requests of all dialects: their bodies, their limits and their deadline."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import BaseModel, ValidationError

from unreel.core.errors import InvalidValueError
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


def require_size(n_bytes: int, service: "RewardService") -> None:
    """Raise `InvalidValueError` for a clip above the limit of the service."""
    if n_bytes > service.settings.max_clip_bytes:
        msg = f"the clip is larger than {service.settings.max_clip_bytes} bytes. Send a shorter one"
        raise InvalidValueError(msg)


async def score_items(
    service: "RewardService", items: Sequence[RewardItem], request: "Request"
) -> list[tuple[RewardItem, Reward]]:
    """Return the reward of each item, within the service's deadline.

    Raises:
        RequestRefusedError: There are more items than the service accepts.
    """
    settings = service.settings
    if len(items) > settings.max_items:
        message = f"{len(items)} videos; at most {settings.max_items} are accepted. Send fewer"
        raise RequestRefusedError(INVALID, "invalid", message)
    token = getattr(request.state, "token", None)
    scored = await service.score(items, deadline_s=settings.deadline_s, token=token)
    return [(item, each.reward) for item, each in zip(items, scored, strict=True)]
