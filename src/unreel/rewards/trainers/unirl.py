"""Dialect of UniRL: `POST /score`; the service's own `GET /health` lists the reward `unreel` as UniRL expects it."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel

from unreel.core.errors import InvalidValueError
from unreel.rewards.service.gate import require_max_items
from unreel.rewards.service.request_items import (
    FileBytes,
    FileReference,
    RewardRequestItem,
    decode_base64,
)
from unreel.rewards.service.schema import parse_request_body
from unreel.rewards.service.scoring import RewardService
from unreel.webapp.refusals import RequestRefusedError

NAME = "unreel"
"""Name of the reward in `required_rewards`."""
HEADLINE = "reward"
"""Name of the first sub-metric, which UniRL's `sub_metric_reduce` takes by default."""


class UnirlHistoryTurn(BaseModel):
    """Turn of a UniRL conversation: prompt and video; UniRL's fields for images are ignored."""

    text: str = ""
    video_b64: str | None = None
    video_path: str | None = None


class UnirlScoreRequest(BaseModel):
    """UniRL's request to score one video: the video of the last turn that has one."""

    history: list[UnirlHistoryTurn]
    required_rewards: list[str]


class UnirlScoreBatch(BaseModel):
    """Body of UniRL's `POST /score`: the requests to score several videos."""

    requests: list[UnirlScoreRequest]


def build_unirl_router(service: RewardService) -> APIRouter:
    """Return the router with the route that UniRL requests."""
    router = APIRouter(tags=["unirl"])

    @router.post("/score")
    async def score(request: Request) -> dict[str, list[Any]]:
        batch = await asyncio.to_thread(parse_request_body, UnirlScoreBatch, await request.body())
        require_max_items(len(batch.requests), service.settings.max_items)
        unknown = {name for query in batch.requests for name in query.required_rewards} - {NAME}
        if unknown:
            raise RequestRefusedError(
                400,
                "unknown-reward",
                f"no reward is named {sorted(unknown)}. Set required_rewards: [{NAME}]",
            )
        results: list[dict[str, dict[str, float]]] = [{} for _ in batch.requests]
        errors: list[dict[str, str]] = [{} for _ in batch.requests]
        items = []
        for index, query in enumerate(batch.requests):
            try:
                items.append(await asyncio.to_thread(_parse_score_request, query, index, service))
            except InvalidValueError as error:
                errors[index][NAME] = str(error)
        for item, reward in await service.score_request(items, request.state):
            index = int(item.id or 0)
            if reward.value is None:
                errors[index][NAME] = str(reward.failure)
            else:
                results[index][NAME] = {HEADLINE: reward.value, **reward.parts}
        return {"results": results, "errors": errors}

    return router


def _parse_score_request(
    request: UnirlScoreRequest, index: int, service: RewardService
) -> RewardRequestItem:
    turns = [turn for turn in request.history if turn.video_b64 or turn.video_path]
    if not turns:
        raise InvalidValueError(
            "the history has no video_b64 and no video_path. Set input_kind: video"
        )
    turn, video = turns[-1], FileReference(turns[-1].video_path or "")
    if not turn.video_b64:
        return RewardRequestItem(video=video, id=str(index), prompt=turn.text)
    data = decode_base64(turn.video_b64, "video_b64")
    if len(data) > service.settings.max_clip_bytes:
        raise InvalidValueError(
            f"the clip is larger than {service.settings.max_clip_bytes} bytes. Send a shorter one"
        )
    return RewardRequestItem(video=FileBytes(data), id=str(index), prompt=turn.text)
