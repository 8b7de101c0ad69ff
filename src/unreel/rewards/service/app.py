"""FastAPI application of the reward service."""

import asyncio
import io
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any

import numpy as np
from fastapi import FastAPI, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from prometheus_client import generate_latest
from starlette.exceptions import HTTPException

from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure
from unreel.rewards.result import FORMULA
from unreel.rewards.service.gate import RewardServiceMiddleware, require_max_items
from unreel.rewards.service.log import CONTENT_TYPE
from unreel.rewards.service.request_items import (
    FileBytes,
    FileReference,
    ItemReward,
    MediaSource,
    RewardRequestItem,
    convert_failure_to_json,
    decode_base64,
    parse_frame_array,
    parse_multipart_body,
)
from unreel.rewards.service.schema import (
    ERRORS,
    BatchRequest,
    BatchResponse,
    ComparedResponse,
    VideoSource,
    build_request_body_schema,
    parse_request_body,
)
from unreel.rewards.service.scoring import TIE, ItemComparison, RewardService
from unreel.rewards.service.settings import DIALECTS, RewardServiceSettings
from unreel.webapp.refusals import (
    STOPPED,
    InvalidRequestError,
    RequestRefusedError,
    build_too_large_refusal,
)

_SMALL = 1 << 16


def create_reward_app(settings: RewardServiceSettings) -> FastAPI:
    """Return the application; its models open now and close with its lifespan."""
    service = RewardService(settings)

    @asynccontextmanager
    async def live(_app: FastAPI) -> AsyncIterator[None]:
        await service.watch_log()
        yield
        await service.drain()
        await service.close()

    app = FastAPI(title="unreel reward", version="1", lifespan=live, docs_url=None, redoc_url=None)
    app.state.service = service
    refused = service.metrics.refused
    app.add_middleware(
        RewardServiceMiddleware,
        settings=settings,
        find_refusal=lambda: service.refusal,
        refused=refused,
    )
    _add_error_handlers(app, service)
    _add_reward_routes(app, service)
    _add_status_routes(app, service)
    for name in settings.dialects:
        app.include_router(DIALECTS[name](service))
    _add_body_schemas(app)
    return app


def _add_reward_routes(app: FastAPI, service: RewardService) -> None:
    @app.post(
        "/v1/rewards",
        response_model=BatchResponse,
        responses=ERRORS,
        openapi_extra=build_request_body_schema(),
    )
    async def score_items(request: Request) -> Response:
        """Score clips. The reply has one result for each item, in order; a failed one has value null."""
        items, deadline_s = await read_reward_request(
            request, service.settings.max_items, service.settings
        )
        state = request.state
        results = await service.score(
            items, deadline_s=deadline_s, token=state.token, work=state.work
        )
        body = {"formula": FORMULA, "results": [_format_item_result(result) for result in results]}
        return JSONResponse(body)

    @app.post(
        "/v1/rewards:compare",
        response_model=ComparedResponse,
        responses=ERRORS,
        openapi_extra=build_request_body_schema(),
    )
    async def compare_items(request: Request) -> Response:
        """Compare all pairs of a group in both orders. An unreadable answer gives null, not half a win."""
        items, deadline_s = await read_reward_request(
            request, service.settings.max_compared, service.settings
        )
        if len(items) < 2:  # noqa: PLR2004  a pair
            raise InvalidRequestError("compare at least two items")
        state = request.state
        pairs = await service.compare(
            items, deadline_s=deadline_s, token=state.token, work=state.work
        )
        return JSONResponse(_format_comparisons(items, pairs))

    @app.get(
        "/v1/rewards/{reward_id}/map",
        response_class=Response,
        responses={200: {"content": {"application/x-npy": {}}}, 404: ERRORS[400], **ERRORS},
    )
    async def read_map(reward_id: Annotated[str, Path(pattern="^[0-9a-f]{32}$")]) -> Response:
        """Return the map of a stored reward as npy: float32, time x height x width, 1 = no trace."""
        scored = await service.find_reward(reward_id)
        reward_map = scored and scored.reward.map
        if not reward_map:
            status = 404
            raise RequestRefusedError(status, "not-found", "no map is stored under this id")
        file = io.BytesIO()
        np.lib.format.write_array(file, reward_map.array, allow_pickle=False)
        instants = ",".join(f"{at_s:.6f}" for at_s in reward_map.instants_s)
        headers = {"x-unreel-instants-s": instants}
        return Response(file.getvalue(), media_type="application/x-npy", headers=headers)


def _add_status_routes(app: FastAPI, service: RewardService) -> None:
    @app.get("/health")
    async def read_health() -> dict[str, Any]:
        """Return that the process runs, and the names of the rewards."""
        return {"status": "ok", "rewards": {"unreel": ["value", *service.part_names]}}

    @app.get("/ready", responses={503: ERRORS[503]})
    async def read_readiness() -> dict[str, str]:
        """Return whether requests are accepted."""
        if service.refusal:
            raise RequestRefusedError(STOPPED, "stopped", service.refusal, 5.0)
        return {"status": "ready"}

    @app.get("/metrics", response_class=Response, responses={**ERRORS})
    async def read_metrics() -> Response:
        """Return metrics in Prometheus's text format."""
        return Response(generate_latest(service.metrics.registry), media_type=CONTENT_TYPE)


def _add_error_handlers(app: FastAPI, service: RewardService) -> None:
    @app.exception_handler(RequestRefusedError)
    async def refuse(_request: Request, error: RequestRefusedError) -> Response:
        service.metrics.refused.labels(error.reason).inc()
        return JSONResponse(error.document, error.status, error.headers)

    @app.exception_handler(HTTPException)
    async def refuse_http(request: Request, error: HTTPException) -> Response:
        refusal = RequestRefusedError(error.status_code, "http", str(error.detail))
        response = await refuse(request, refusal)
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(RequestValidationError)
    async def refuse_invalid(request: Request, error: RequestValidationError) -> Response:
        message = "; ".join(each["msg"] for each in error.errors()[:3])
        return await refuse(request, InvalidRequestError(message))


def _add_body_schemas(app: FastAPI) -> None:
    """Add the schemas of request bodies that FastAPI does not parse to the OpenAPI document."""
    describe: Callable[[], dict[str, Any]] = app.openapi

    def describe_all() -> dict[str, Any]:
        document = describe()
        schema = BatchRequest.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        schemas.update(schema.pop("$defs", {}))
        schemas["BatchRequest"] = schema
        return document

    app.openapi = describe_all  # type: ignore[method-assign]  # FastAPI's way to extend the document


async def read_reward_request(
    request: Request, max_items: int, settings: RewardServiceSettings
) -> tuple[list[RewardRequestItem], float]:
    """Read the items of a scoring request, and the remaining seconds until its deadline.

    Raises:
        RequestRefusedError: The body is not a valid request, or has more than `max_items` items.
    """
    uploads: dict[str, bytes] = {}
    content_type = request.headers.get("content-type", "")
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in {"multipart/form-data", "application/json"}:
        status = 415
        raise RequestRefusedError(
            status, "unsupported-media-type", "send application/json or multipart/form-data"
        )
    body = await request.body()
    try:
        if kind == "multipart/form-data":
            uploads = parse_multipart_body(body, content_type, max_parts=max_items + 1)
            body = uploads.pop("request", b"")
        read = partial(_parse_request_items, body, uploads, max_items, settings)
        # Only long documents, with clips in base64, are parsed in a thread.
        batch, items = read() if len(body) < _SMALL else await asyncio.to_thread(read)
    except InvalidValueError as error:
        raise InvalidRequestError(str(error)) from None
    spent_s = time.monotonic() - request.state.began_s
    return items, max(0.0, min(batch.deadline_s, settings.deadline_s) - spent_s)


def _parse_request_items(
    body: bytes, uploads: Mapping[str, bytes], max_items: int, settings: RewardServiceSettings
) -> tuple[BatchRequest, list[RewardRequestItem]]:
    batch = parse_request_body(BatchRequest, body)
    require_max_items(len(batch.items), max_items)
    items = []
    for item in batch.items:
        video = _parse_video_source(item.video, uploads)
        if isinstance(video, FileBytes) and len(video.data) > settings.max_clip_bytes:
            raise build_too_large_refusal(settings.max_clip_bytes)
        fields = item.model_dump(exclude={"video"})
        items.append(RewardRequestItem(video=video, **fields))
    return batch, items


def _parse_video_source(video: VideoSource, uploads: Mapping[str, bytes]) -> MediaSource:
    if video.data is not None:
        return FileBytes(decode_base64(video.data, "data"))
    if video.array is not None:
        return parse_frame_array(decode_base64(video.array, "array"), video.fps or math.nan)
    if video.path is not None or video.url is not None:
        return FileReference(video.path or "", video.url or "")
    if video.upload is None or video.upload not in uploads:
        raise InvalidValueError(f"no file part is named {video.upload!r}")
    return FileBytes(uploads[video.upload])


def _format_item_result(result: ItemReward) -> dict[str, Any]:
    reward = result.reward
    has_map = reward.map is not None and reward.value is not None
    return {
        "id": result.id,
        "reward_id": result.reward_id,
        "value": reward.value,
        "calibrated": reward.calibrated,
        "parts": dict(reward.parts),
        "verdicts": list(result.verdicts),
        "failure": reward.failure and convert_failure_to_json(reward.failure),
        "map": f"/v1/rewards/{result.reward_id}/map" if has_map else None,
    }


def _format_comparisons(
    items: list[RewardRequestItem], comparisons: list[ItemComparison]
) -> dict[str, Any]:
    results = [_format_win_rate(items[index].id, index, comparisons) for index in range(len(items))]
    return {
        "formula": FORMULA,
        "comparisons": [*map(_format_pair, comparisons)],
        "results": results,
    }


def _format_pair(comparison: ItemComparison) -> dict[str, Any]:
    document: dict[str, Any] = {"first": comparison.first, "second": comparison.second}
    if isinstance(comparison.outcome, Failure):
        return document | {
            "preferred": None,
            "failure": convert_failure_to_json(comparison.outcome),
        }
    winner = "first" if comparison.outcome > TIE else "second"
    return document | {"preferred": None if comparison.outcome == TIE else winner, "failure": None}


def _format_win_rate(
    item_id: str | None, index: int, comparisons: list[ItemComparison]
) -> dict[str, Any]:
    """Return the win rate of one item; a failure only if none of its comparisons was read."""
    rates, failures = [], []
    for pair in comparisons:
        if index not in (pair.first, pair.second):
            continue
        if isinstance(pair.outcome, Failure):
            failures.append(convert_failure_to_json(pair.outcome))
        else:
            rates.append(pair.outcome if pair.first == index else 1 - pair.outcome)
    return {
        "id": item_id,
        "value": sum(rates) / len(rates) if rates else None,
        "n_compared": len(rates),
        "failure": None if rates else failures[0],
    }
