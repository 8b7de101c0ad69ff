"""`http:NAME`: reviewer that posts a clip or its frames to a detector service, and gets a score."""

import base64
import json
from typing import Any
from urllib.parse import urlsplit

from unreel.core.failure import Failure, FailureReason
from unreel.core.settings import read_secret_variable
from unreel.core.span import convert_to_microseconds
from unreel.reviewers.contract import ClipInput, InputKind
from unreel.reviewers.endpoint.budget import RequestBudget
from unreel.reviewers.endpoint.client import ModelServerClient
from unreel.reviewers.endpoint.load_control import ConcurrencyLimiter
from unreel.reviewers.endpoint.model_address import ModelAddress
from unreel.reviewers.endpoint.transport import HttpTransport, build_reply_from_json_response
from unreel.reviewers.external.detector_scores import (
    DetectorReviewer,
    DetectorScoreInterpretation,
    ExternalServiceConfig,
    parse_detector_reply,
)

_MAX_REPLY_BYTES = 64 * 1024


class _ScoreServiceClient(ModelServerClient):
    """Client of a detector service, with the retries of a model server; any JSON object is a reply."""

    read = staticmethod(build_reply_from_json_response)


class DetectorServiceReviewer(DetectorReviewer):
    """Reviewer that posts each clip to a detector service and turns its scores into an answer."""

    def __init__(
        self,
        name: str,
        config: ExternalServiceConfig,
        interpretation: DetectorScoreInterpretation,
        *,
        key_variable: str | None,
        seed: int,
    ) -> None:
        api_key = None if key_variable is None else read_secret_variable(key_variable)
        self._show = config.show
        is_clip = self._show == "clip"
        super().__init__(name, InputKind.CLIP if is_clip else InputKind.FRAMES, interpretation)
        site = urlsplit(config.url)
        mime = "application/octet-stream" if is_clip else "application/json"
        self._transport = HttpTransport(
            ModelAddress(provider="http", model=name, base_url=f"{site.scheme}://{site.netloc}"),
            api_key=api_key,
            max_connections=config.max_connections,
            cap_bytes=_MAX_REPLY_BYTES,
            path=site.path or "/",
            content_type=mime,
        )
        self._client = _ScoreServiceClient(
            self._transport,
            limiter=ConcurrencyLimiter(max_connections=config.max_connections),
            retry_policy=config.retry_policy,
            budget=RequestBudget(max_requests=config.max_requests, max_cost_usd=None, price=None),
            redact=lambda text: text.replace(api_key, "[key]") if api_key else text,
            seed=seed,
        )

    async def request_score(self, clip_input: ClipInput, key: str) -> Any | Failure:
        if self._show == "clip" and clip_input.whole is not None:
            body = clip_input.whole.data
        elif self._show == "frames" and clip_input.frames:
            frames = [
                {
                    "at_us": convert_to_microseconds(frame.at_s),
                    "jpeg": base64.b64encode(frame.jpeg).decode(),
                }
                for frame in clip_input.frames
            ]
            body = json.dumps({"frames": frames}).encode()
        else:
            return Failure(FailureReason.REQUEST_REJECTED, f"not asked: no {self._show} is shown")
        outcome = await self._client.ask(body, key=key)
        if isinstance(outcome, Failure):
            return outcome
        return parse_detector_reply(outcome.text.encode())

    async def close(self) -> None:
        await self._transport.close()
