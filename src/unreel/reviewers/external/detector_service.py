"""`http:NAME`: reviewer that posts a clip or its frames to a detector service, and gets a score."""

import base64
import json
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from unreel.core.answer import Reply
from unreel.core.failure import Failure, FailureReason
from unreel.core.retry import RetryPolicy
from unreel.core.span import convert_to_microseconds
from unreel.reviewers.baselines.constant import format_baseline_answer
from unreel.reviewers.contract import ClipInput, InputKind, ReviewRequest
from unreel.reviewers.endpoint.budget import RequestBudget
from unreel.reviewers.endpoint.client import ModelServerClient
from unreel.reviewers.endpoint.load_control import ConcurrencyLimiter
from unreel.reviewers.endpoint.model_address import ModelAddress
from unreel.reviewers.endpoint.transport import (
    HttpPostTarget,
    HttpTransport,
    build_reply_from_json_response,
)
from unreel.reviewers.external.detector_scores import (
    DetectorScoreInterpretation,
    Shown,
    parse_detector_reply,
)

_CAP_BYTES = 64 * 1024
"""Maximum size of a reply in bytes."""


class _ScoreServiceClient(ModelServerClient):
    """Client of a detector service, with the retries of a model server; any JSON object is a reply."""

    read = staticmethod(build_reply_from_json_response)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalServiceAccess:
    """An external service: its URL, API key, the posted input, and the limits of requests."""

    url: str
    show: Shown = "clip"
    api_key: str | None = field(default=None, repr=False)
    max_connections: int = 16
    max_requests: int | None = None
    patience: RetryPolicy = field(default_factory=RetryPolicy)


class DetectorServiceReviewer:
    """Reviewer that posts each clip to a detector service and turns its scores into an answer."""

    def __init__(
        self,
        name: str,
        service: ExternalServiceAccess,
        interpretation: DetectorScoreInterpretation,
        *,
        seed: int = 0,
    ) -> None:
        self._name = name
        self._show = service.show
        self._reading = interpretation
        self._secret = service.api_key
        site = urlsplit(service.url)
        kind = "application/octet-stream" if self._show == "clip" else "application/json"
        self._transport = HttpTransport(
            ModelAddress(provider="http", model=name, base_url=f"{site.scheme}://{site.netloc}"),
            api_key=service.api_key,
            max_connections=service.max_connections,
            cap_bytes=_CAP_BYTES,
            post=HttpPostTarget(site.path or "/", kind),
        )
        self._asker = _ScoreServiceClient(
            self._transport,
            limiter=ConcurrencyLimiter(max_connections=service.max_connections),
            retry_policy=service.patience,
            budget=RequestBudget(max_requests=service.max_requests, max_cost_usd=None, price=None),
            redact=self._redact,
            seed=seed,
        )

    def __repr__(self) -> str:
        return f"HttpReviewer({self._name!r})"

    @property
    def name(self) -> str:
        return self._name

    @property
    def wants(self) -> frozenset[InputKind]:
        return frozenset({InputKind.CLIP if self._show == "clip" else InputKind.FRAMES})

    def box_space(self, clip_input: ClipInput) -> str:  # noqa: ARG002  it draws no boxes
        return "unit"

    async def answer(self, request: ReviewRequest) -> Reply | Failure:
        posteriors: list[float] = []
        for number, clip_input in enumerate(request.inputs):
            posterior = await self._ask(clip_input, f"{request.key}-{number}")
            if isinstance(posterior, Failure):
                return posterior
            posteriors.append(posterior)
        return format_baseline_answer(request, posteriors)

    async def close(self) -> None:
        await self._transport.close()

    async def _ask(self, clip_input: ClipInput, key: str) -> float | Failure:
        body = self._body(clip_input)
        if isinstance(body, Failure):
            return body
        outcome = await self._asker.ask(body, key=key)
        if isinstance(outcome, Failure):
            return outcome
        reply = parse_detector_reply(outcome.text.encode())
        return reply if isinstance(reply, Failure) else self._reading.believe(reply)

    def _body(self, clip_input: ClipInput) -> bytes | Failure:
        if self._show == "clip" and clip_input.whole is not None:
            return clip_input.whole.data
        if self._show == "frames" and clip_input.frames:
            frames = [
                {
                    "at_us": convert_to_microseconds(frame.at_s),
                    "jpeg": base64.b64encode(frame.jpeg).decode(),
                }
                for frame in clip_input.frames
            ]
            return json.dumps({"frames": frames}).encode()
        return Failure(FailureReason.REQUEST_REJECTED, f"not asked: no {self._show} is shown")

    def _redact(self, text: str) -> str:
        return text.replace(self._secret, "[key]") if self._secret else text
