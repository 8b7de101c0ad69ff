"""Reviewer that asks a model behind an OpenAI-compatible server, and its chat requests."""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Any, Protocol

from unreel.core.answer import Reply, Usage
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure, FailureReason
from unreel.core.retry import RetryPolicy
from unreel.network.http_client import REPLY_BYTES
from unreel.protocols.protocol import asks_to_think
from unreel.reviewers.contract import ClipInput, InputKind, ReviewRequest, ShownFrame, WholeClip
from unreel.reviewers.endpoint.budget import (
    EarlierSpending,
    RequestBudget,
    SpendingSummary,
    TokenPrice,
)
from unreel.reviewers.endpoint.client import ModelServerClient
from unreel.reviewers.endpoint.load_control import ConcurrencyLimiter
from unreel.reviewers.endpoint.model_address import PROVIDERS, parse_model_address
from unreel.reviewers.endpoint.model_families import (
    RESIZED,
    ModelFamily,
    apply_resize_bounds,
    build_thinking_request_fields,
    detect_model_family,
)
from unreel.reviewers.endpoint.token_estimate import estimate_max_token_usage
from unreel.reviewers.endpoint.transport import HttpTransport
from unreel.reviewers.message_parts import (
    TIMED_FAMILIES,
    Part,
    Showing,
    build_message_parts,
    build_rejected_request_failure,
    compute_family_frame_timing,
    explain_unsupported_video,
)


def build_chat_request_body(
    request: ReviewRequest, *, family: ModelFamily, show: Showing, fields: Mapping[str, Any]
) -> bytes | Failure:
    """Build the chat body with further `fields`, or return why the request cannot be sent."""
    condition = request.condition
    if condition.audio == "on" and not family.audio:
        return build_rejected_request_failure(f"the {family.name} family takes no sound")
    if condition.thinking != "default":
        switched = build_thinking_request_fields(
            family, condition.thinking, asked=asks_to_think(request.prompt)
        )
        if isinstance(switched, str):
            return build_rejected_request_failure(switched)
        fields = {**fields, **switched}
    parts = build_message_parts(request, form=show, times=family.times)
    if isinstance(parts, Failure):
        return parts
    if show == "video":
        # The request fields that give vLLM the frame times.
        if reason := explain_unsupported_video(family.kind, request):
            return build_rejected_request_failure(reason)
        timings = {compute_family_frame_timing(family.kind, clip.frames) for clip in request.inputs}
        if len(timings) > 1:
            return build_rejected_request_failure(
                "vLLM takes one set of timestamps for all videos, and the clips' differ"
            )
        for timing in timings:
            video = {
                "fps": float(timing.fps),
                "frames_indices": list(timing.indices),
                "total_num_frames": timing.indices[-1] + 1,
                "num_frames": -1,  # all sent frames; the default is the first 32
                "do_sample_frames": False,
            }
            fields = {**fields, "media_io_kwargs": {"video": video}}
    head = json.dumps(fields)[:-1].encode()
    message = b'"messages": [{"role": "user", "content": '
    if request.system:
        system = json.dumps({"role": "system", "content": request.system}).encode()
        message = b'"messages": [' + system + b', {"role": "user", "content": '
    content = json.dumps(request.prompt).encode()
    if request.inputs:
        content = b"".join((b"[", b", ".join(map(_encode_message_part, parts)), b"]"))
    return b"".join((head, b", ", message, content, b"}]}"))


def _encode_message_part(part: Part) -> bytes:
    match part:
        case str():
            return json.dumps({"type": "text", "text": part}).encode()
        case ShownFrame():
            return _encode_data_url_part("image_url", "image/jpeg", b64encode(part.jpeg))
        case WholeClip():
            return _encode_data_url_part("video_url", part.mime, b64encode(part.data))
        case bytes():
            head = b'{"type": "input_audio", "input_audio": {"format": "wav", "data": "'
            return b"".join((head, b64encode(part), b'"}}'))
        case frames:
            data = b",".join(b64encode(frame.jpeg) for frame in frames)
            return _encode_data_url_part("video_url", "video/jpeg", data)


def _encode_data_url_part(kind: str, mime: str, base64: bytes) -> bytes:
    # Base64 needs no JSON escapes, so megabytes are joined as they are instead of being scanned.
    head = f'{{"type": "{kind}", "{kind}": {{"url": "data:{mime};base64,'
    return b"".join((head.encode(), base64, b'"}}'))


TAKE_FRAMES = frozenset({"compatible", "vllm"})
"""Providers whose server may be vLLM, which accepts frames as one video."""
_SHORTEST_SECRET = 4
"""Minimum length of API keys to redact; shorter ones are placeholders such as `x`, which occur in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelIOFormat:
    """Input and output format of a model; differences from the default are part of its name."""

    show: Showing = "frames"
    """Input form: single frames, frames as one video for a vLLM server, or the whole clip for a family
    that accepts video."""
    max_tokens: int = 2048
    temperature: float | None = 0.0
    """Sampling temperature, sent if the family accepts it; `None` for the server's default."""
    seed: int | None = None
    family: str | None = None
    box_space: str | None = None
    """Coordinate space of the boxes, if it differs from the family's."""

    def label(self) -> str:
        """Return the settings that differ from the default, as `name=value` separated by commas."""
        usual = ModelIOFormat()
        changed = [f.name for f in fields(self) if getattr(self, f.name) != getattr(usual, f.name)]
        return ",".join(f"{name}={getattr(self, name)}" for name in changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointLimits:
    """Limits of concurrency, requests and cost for a server."""

    max_connections: int = 16
    max_requests: int | None = None
    max_cost_usd: Decimal | None = None
    price: TokenPrice | None = None
    before: EarlierSpending = field(default_factory=EarlierSpending)
    patience: RetryPolicy = field(default_factory=RetryPolicy)


def format_endpoint_model_name(model: str, io_format: ModelIOFormat) -> str:
    """Return the stable name of `model` with the format `io_format`, without the server address."""
    name, label = parse_model_address(model).name, io_format.label()
    return f"{name}?{label}" if label else name


class QuestionClient(Protocol):
    """Interface that asks one question, given as the body of a chat request."""

    async def ask(self, body: bytes, *, key: str, max_usage: Usage) -> Reply | Failure:
        """Return the reply to `body`, or a failure; `key` is that of the question."""


class EndpointReviewer:
    """Reviewer that asks a model behind a server, for concurrent requests within one event loop.

    The API key never appears in names, logs, answers or failures. `key_words` describe its source,
    for the message if it is rejected. `seed` is that of the backoff between attempts. `client` asks
    instead of one for the server itself.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        key_words: str = "",
        io_format: ModelIOFormat = ModelIOFormat(),  # noqa: B008  frozen
        limits: EndpointLimits = EndpointLimits(),  # noqa: B008  frozen
        seed: int = 0,
        client: QuestionClient | None = None,
    ) -> None:
        address = parse_model_address(model)
        if api_key and not address.server.keeps_secrets:
            raise InvalidSettingError(
                "model",
                f"a key would be sent to {address.server} in clear",
                "Write https://, or tunnel it to 127.0.0.1",
            )
        family = apply_resize_bounds(
            detect_model_family(address, io_format.family), io_format.box_space or ""
        )
        self._family = family
        remedy = "Leave it out, or name the model's family"
        if io_format.show == "clip" and not family.video:
            raise InvalidSettingError(
                "show", f"the {family.name} family cannot be shown the clip", remedy
            )
        if io_format.show == "video" and family.kind not in TIMED_FAMILIES:
            raise InvalidSettingError(
                "show", f"the timestamp format of the {family.name} family is not known", remedy
            )
        if io_format.show == "video" and address.provider not in TAKE_FRAMES:
            raise InvalidSettingError(
                "show",
                f"{address.provider} takes no video made of frames",
                "Serve it with `unreel serve`, or show frames",
            )
        if io_format.seed is not None and not family.seeds:
            raise InvalidSettingError("seed", f"the {family.name} family takes no seed", remedy)
        self._show = io_format.show
        is_resized = (io_format.box_space or "").startswith(RESIZED)
        self._box_space = None if is_resized else io_format.box_space
        length_field = PROVIDERS[address.provider].length_field
        request: dict[str, Any] = {"model": address.model, length_field: io_format.max_tokens}
        if io_format.temperature is not None and family.temperature:
            request["temperature"] = io_format.temperature
        if io_format.seed is not None:
            request["seed"] = io_format.seed
        self._fields = request
        self.name = format_endpoint_model_name(model, io_format)
        self._model = address.model
        self._key_words = key_words
        secret = api_key if api_key and len(api_key) >= _SHORTEST_SECRET else None
        self._budget = RequestBudget(
            max_requests=limits.max_requests,
            max_cost_usd=limits.max_cost_usd,
            price=limits.price,
            before=limits.before,
        )
        self._max_tokens = io_format.max_tokens
        self._transport = HttpTransport(
            address, api_key=api_key, max_connections=limits.max_connections, cap_bytes=REPLY_BYTES
        )
        self._asker: QuestionClient = client or ModelServerClient(
            self._transport,
            limiter=ConcurrencyLimiter(max_connections=limits.max_connections),
            retry_policy=limits.patience,
            budget=self._budget,
            redact=lambda text: text.replace(secret, "[key]") if secret else text,
            seed=seed,
        )

    @property
    def wants(self) -> frozenset[InputKind]:
        pictures = InputKind.CLIP if self._show == "clip" else InputKind.FRAMES
        return frozenset({pictures} | ({InputKind.SOUND} if self._family.audio else set()))

    @property
    def spending(self) -> SpendingSummary:
        """Return the requests, tokens and cost so far."""
        return self._budget.spending()

    def box_space(self, clip_input: ClipInput) -> str:
        film = self._show == "video"
        return self._box_space or self._family.box_space(*clip_input.shown_size, film=film)

    async def answer(self, request: ReviewRequest) -> Reply | Failure:
        body = build_chat_request_body(
            request, family=self._family, show=self._show, fields=self._fields
        )
        if isinstance(body, Failure):
            return body
        usage = estimate_max_token_usage(request, family=self._family, max_tokens=self._max_tokens)
        outcome = await self._asker.ask(body, key=request.key, max_usage=usage)
        if isinstance(outcome, Failure) and outcome.reason is FailureReason.KEY_REJECTED:
            detail = "; ".join(filter(None, (outcome.detail, self._key_words)))
            return replace(outcome, detail=detail)
        if isinstance(outcome, Reply) and outcome.answered_by in {"", self._model}:
            return replace(outcome, answered_by=None)
        return outcome

    async def close(self) -> None:
        self._budget.close()
        await self._transport.close()
