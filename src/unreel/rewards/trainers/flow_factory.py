"""Request format of Flow-Factory: `POST /compute` of its reward server, with PNG frames.

Its requests have no frame rate, so the rate is part of the URL: `server_url: http://host:port/fps/16`.
"""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel

from unreel.core.errors import InvalidValueError
from unreel.rewards.service.request_items import decode_base64
from unreel.rewards.service.schema import parse_request_body
from unreel.rewards.service.scoring import RewardService
from unreel.rewards.trainers.pictures import PictureListScorer
from unreel.webapp.refusals import InvalidRequestError

FrameRate = Annotated[float, Path(gt=0, le=240, allow_inf_nan=False)]


class FlowFactoryRequest(BaseModel):
    """Body of `POST /compute`: prompts, and the frames of each video; other fields are ignored."""

    prompt: list[str | None]
    video: list[list[str]]


def build_flow_factory_router(service: RewardService) -> APIRouter:
    """Return the router with the routes that Flow-Factory requests."""
    router = APIRouter(tags=["flow-factory"])
    scorer = PictureListScorer(service)

    @router.get("/fps/{fps}/health")
    async def health(fps: FrameRate) -> dict[str, str | float]:
        return {"status": "ok", "fps": fps}

    @router.post("/compute")
    async def refuse() -> None:
        raise InvalidRequestError(
            "the frame rate is missing. Set server_url to http://host:port/fps/16"
        )

    @router.post("/fps/{fps}/compute")
    async def compute(fps: FrameRate, request: Request) -> dict[str, list[float]]:
        videos, prompts = await asyncio.to_thread(_parse_flow_factory_request, await request.body())
        return {"rewards": await scorer.score(videos, prompts, fps, request)}

    return router


def _parse_flow_factory_request(body: bytes) -> tuple[list[list[bytes]], list[str | None]]:
    parsed = parse_request_body(FlowFactoryRequest, body)
    try:
        videos = [[decode_base64(each, "a frame") for each in frames] for frames in parsed.video]
    except InvalidValueError as error:
        raise InvalidRequestError(str(error)) from None
    return videos, parsed.prompt
