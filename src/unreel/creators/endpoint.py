"""`kind = "endpoint"`: clips from the video API that OpenAI, vLLM-Omni and SGLang share.

`POST videos` submits a job, `GET videos/ID` polls it, and `GET videos/ID/content` downloads the clip.
Notes on disk prevent that a killed run pays for a clip twice: "submit", the idempotency key of a job, is written
before the job is submitted; "job", its id, before it is polled; "round" counts the failed jobs of the brief.
"""

import asyncio
import io
import json
import logging
import math
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, ClassVar
from urllib.parse import quote

import numpy as np
from PIL import Image, ImageOps
from pydantic import Field, StringConstraints, model_validator

from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError, InvalidValueError, raise_if_machine_error
from unreel.core.failure import Failure, FailureReason
from unreel.core.input_files import parse_json
from unreel.core.output_files import OutputDirectory
from unreel.core.retry import MAX_ATTEMPTS, RetryPolicy, backoff_s, parse_retry_after
from unreel.core.safe_text import sanitise_line
from unreel.core.server_keys import (
    ServerAddress,
    find_server_key_variable,
    parse_server_url,
    require_encrypted_connection,
)
from unreel.core.settings import read_secret_variable
from unreel.core.span import MICROSECONDS
from unreel.creators.contract import (
    ClipBrief,
    ClipClass,
    Creator,
    CreatorContext,
    CreatorEnvironment,
    CreatorInput,
    CreatorKeys,
    GeneratedClip,
)
from unreel.media.picture import encode_png
from unreel.network.http_client import (
    convert_connection_error_to_failure,
    declares_larger_body,
    find_unexpected_encoding,
    open_http_client,
    read_http_reply,
)
from unreel.recipes.validation import MAX_PARTS, Count, Deadline, RecipeNumberUnit, Text

logger = logging.getLogger(__name__)

OPENAI = parse_server_url("https://api.openai.com/v1")
OPENAI_KEY = "OPENAI_API_KEY"
Dollars = Annotated[Decimal, Field(ge=0, le=10**6), RecipeNumberUnit("US dollars")]
Size = Annotated[str, StringConstraints(pattern=r"^[1-9]\d{0,4}x[1-9]\d{0,4}$")]
# Part of the creator's stable name: with another text, a season would pay for its clips again.
_API = (
    '{"submit":"videos","body":{"model":"{model}","prompt":"{text}","seconds":"{seconds}",'
    '"size":"{size}","input_reference":{"image_url":"{image}"}},"id":"id","status":"videos/{id}",'
    '"state":"status","done":["completed"],"failed":["failed"],"error":"error.message",'
    '"result":"url","content":"videos/{id}/content","version":"model",'
)


class EndpointCreatorConfig(CreatorKeys):
    """`kind = "endpoint"`: a video service, its timeouts, and limits of cost."""

    besides: ClassVar[frozenset[str]] = frozenset(
        {"url", "deadline_s", "attempt_s", "poll_s", "max_mb"}
        | {"max_clips", "max_cost_usd", "usd_per_clip", "usd_per_second"}
    )
    at_once: ClassVar[int] = 8

    url: Text = "https://api.openai.com/v1"
    """URL of the service, up to and including `/v1`."""
    model: Text = ""
    """Name of the model, as sent to the service; it is omitted from the request if empty."""
    sizes: Annotated[tuple[Size, ...], Field(max_length=MAX_PARTS)] = ("1280x720", "720x1280")
    """Supported sizes: the one with the nearest aspect ratio is requested. If empty, the real clip's size is."""
    seconds: Annotated[tuple[Count, ...], Field(max_length=MAX_PARTS)] = (4, 8, 12)
    """Supported lengths: the shortest sufficient one is requested. If empty, the real clip's length is, rounded up."""
    deadline_s: Deadline = 1800.0
    """Timeout in seconds of a whole job, from submission to its end; also that of a download."""
    attempt_s: Deadline = 120.0
    """Timeout in seconds of one request."""
    poll_s: Annotated[
        float, Field(gt=0, le=3600, allow_inf_nan=False), RecipeNumberUnit("seconds")
    ] = 10.0
    max_mb: Annotated[int, Field(ge=1, le=16_384), RecipeNumberUnit("MiB")] = 1024
    max_clips: Count | None = None
    """Maximum number of jobs that one run submits."""
    max_cost_usd: Dollars | None = None
    """Maximum cost of one run in USD; requires a price."""
    usd_per_clip: Dollars | None = None
    usd_per_second: Dollars | None = None

    @model_validator(mode="after")
    def _limits_are_consistent(self) -> "EndpointCreatorConfig":
        parse_server_url(self.url)
        if self.max_cost_usd is not None and self.compute_cost_usd(1) is None:
            raise InvalidSettingError(
                "max_cost_usd",
                "the price of a clip is unknown",
                "Write usd_per_clip or usd_per_second",
            )
        if self.attempt_s > self.deadline_s:
            raise InvalidSettingError("attempt_s", "longer than deadline_s", "Write a shorter one")
        return self

    def compute_cost_usd(self, seconds: int) -> Decimal | None:
        """Return the price of a clip of `seconds` in USD; `None` if the recipe sets none."""
        if self.usd_per_clip is None and self.usd_per_second is None:
            return None
        zero = Decimal(0)
        return (self.usd_per_clip or zero) + seconds * (self.usd_per_second or zero)

    def label(self, title: str) -> str:
        return self.model or title

    def identity(self) -> str:
        sizes = json.dumps(self.sizes, separators=(",", ":"))
        seconds = json.dumps([str(length) for length in self.seconds], separators=(",", ":"))
        header = '"key_header":"Authorization","key_prefix":"Bearer "}'
        return f'{self.model} {_API}"sizes":{sizes},"seconds":{seconds},{header}'

    def contact(self, key_hosts: str) -> tuple[ServerAddress, str | None]:
        """Return the server, and the environment variable of its API key; never the key.

        Raises:
            InvalidSettingError: The key would be sent unencrypted.
        """
        server = parse_server_url(self.url)
        variable = OPENAI_KEY if server == OPENAI else find_server_key_variable(server, key_hosts)
        if variable is not None:
            require_encrypted_connection(server, variable)
        return server, variable

    def open(self, name: str, environment: CreatorEnvironment) -> Creator:
        server, variable = self.contact(environment.settings.key_hosts)
        key = None if variable is None else read_secret_variable(variable)
        if server == OPENAI and not key:
            raise InvalidSettingError(
                OPENAI_KEY,
                f"not set, and {server} requires a key",
                f"Run `export {OPENAI_KEY}=...` with your key, or name another url",
            )
        return EndpointCreator(name, self, server, key=key)


CLIP = "clip.mp4"
_TRIES = 3
"""Maximum number of malformed replies, of polls of an unknown job in a row, and of downloads."""
_READABLE = 200
_PASSING = frozenset({408, 409, 423, 425})
_MALFORMED = frozenset({FailureReason.MALFORMED_REPLY, FailureReason.REPLY_TOO_LARGE})
_LOST = frozenset(
    {FailureReason.CONNECTION_LOST, FailureReason.OUT_OF_TIME, FailureReason.SERVER_ERROR}
    | {FailureReason.REPLY_TOO_LARGE}
)
"""Failures after which the service may have accepted the job although its reply was lost."""
_ENDED = frozenset({FailureReason.REFUSED, FailureReason.REQUEST_REJECTED})
"""Failures after which a job can never return a clip, so that its stored id is removed."""


class EndpointCreator:
    """Creator that makes each clip by a job at one video service."""

    side = ClipClass.GENERATED
    settings = frozenset(CreatorInput)

    def __init__(
        self, name: str, config: EndpointCreatorConfig, server: ServerAddress, *, key: str | None
    ) -> None:
        self.name = name
        self._keys, self._server, self._key = config, server, key
        self._policy = RetryPolicy(deadline_s=config.deadline_s, attempt_s=config.attempt_s)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = open_http_client(
            server, max_connections=2 * config.at_once, headers=headers, base_url=config.url
        )
        self._n_clips, self._spent_usd = 0, Decimal(0)

    async def make(self, brief: ClipBrief, context: CreatorContext) -> GeneratedClip | Failure:
        try:
            outcome = await self._make(brief, context)
        except Exception as error:  # noqa: BLE001  an unforeseen error costs one clip, not the season
            raise_if_machine_error(error)
            outcome = Failure(FailureReason.STAGE_FAILED, f"{type(error).__name__}: {error}")
        if isinstance(outcome, Failure) and self._key:  # a server may repeat the key
            return replace(outcome, detail=outcome.detail.replace(self._key, "[key]"))
        return outcome

    async def close(self) -> None:
        await self._http.aclose()

    async def _make(self, brief: ClipBrief, context: CreatorContext) -> GeneratedClip | Failure:
        keys, until_s = self._keys, asyncio.get_running_loop().time() + self._keys.deadline_s
        needed = max(1, math.ceil(Fraction(brief.duration_us, MICROSECONDS)))
        enough = [length for length in keys.seconds if length >= needed]
        seconds = min(enough) if enough else max(keys.seconds, default=needed)
        # The size with the nearest aspect ratio, then the nearest area.
        ratio, area = Fraction(brief.width, brief.height), brief.width * brief.height
        width, height = min(
            ((int(w), int(h)) for w, _, h in (size.partition("x") for size in keys.sizes)),
            key=lambda s: (round(abs(math.log(Fraction(*s) / ratio)), 6), abs(s[0] * s[1] - area)),
            default=(brief.width, brief.height),
        )
        # Each job after a failed one has its own idempotency key.
        n_rounds = context.recall("round") or ""
        number = int(n_rounds) if n_rounds.isdecimal() else 0
        job, is_repeated = context.recall("job"), False
        if not job:
            form = self._build_form(brief, (width, height), seconds)
            if isinstance(form, Failure):
                return form
            key = digest(self.name, brief.id, brief.setting.value, str(brief.seed), str(number))
            cost_usd = keys.compute_cost_usd(seconds) or Decimal(0)
            submitted = await self._submit(form, key, cost_usd, context, until_s)
            if isinstance(submitted, Failure):
                return submitted
            job, is_repeated = submitted
        reply = await self._wait(job, until_s)
        if isinstance(reply, Failure):
            if reply.reason in _ENDED:
                context.note("round", str(number + 1))
                context.note("job", "")
            return reply
        failure = await self._download(job, context.folder)
        if failure is not None:
            return failure
        version = reply.get("model")
        parameters: dict[str, str | int | float | bool] = {
            "service": str(self._server),
            "model": keys.model,
            "size": f"{width}x{height}",
            "seconds": seconds,
            "job": job,
        }
        return GeneratedClip(
            file=context.folder / CLIP,
            model=_sanitise(version) if version and isinstance(version, str) else keys.model,
            parameters=parameters | ({"submitted_again": True} if is_repeated else {}),
            cost_usd=keys.compute_cost_usd(seconds),
        )

    def _build_form(
        self, brief: ClipBrief, size: tuple[int, int], seconds: int
    ) -> dict[str, Any] | Failure:
        """Build the multipart form of a request: file name, content and type of each field."""
        needs_frame, frame = brief.setting is not CreatorInput.TEXT, brief.first_frame
        lacks_text = brief.setting is not CreatorInput.IMAGE and not brief.text.strip()
        if lacks_text or (needs_frame and frame is None):
            lack = "text" if lacks_text else "first frame"
            return Failure(FailureReason.REQUEST_REJECTED, f"not asked: the brief has no {lack}")
        fields = {"prompt": brief.text, "model": self._keys.model, "seconds": str(seconds)}
        fields["size"] = f"{size[0]}x{size[1]}"
        if self._server != OPENAI:  # which rejects unknown fields
            fields["seed"] = str(brief.seed)
        form: dict[str, Any] = {name: (None, value) for name, value in fields.items() if value}
        if needs_frame and frame is not None:
            try:
                with Image.open(io.BytesIO(frame), formats=["PNG"]) as picture:
                    if picture.size != size:
                        frame = encode_png(np.asarray(ImageOps.fit(picture.convert("RGB"), size)))
            except (OSError, ValueError, Image.DecompressionBombError) as error:
                detail = f"not asked: the first frame cannot be decoded ({type(error).__name__})"
                return Failure(FailureReason.UNDECODABLE, detail)
            form["input_reference"] = ("first_frame.png", frame, "image/png")
        return form

    async def _submit(
        self, form: dict[str, Any], key: str, cost_usd: Decimal, context: CreatorContext, until_s: float
    ) -> tuple[str, bool] | Failure:  # fmt: skip
        """Submit a job; return its id, and whether it was submitted more than once under one key."""
        max_clips, max_usd = self._keys.max_clips, self._keys.max_cost_usd
        if max_clips is not None and self._n_clips >= max_clips:
            detail = f"not asked: {self._n_clips} clips of max_clips={max_clips} are ordered"
            return Failure(FailureReason.BUDGET_SPENT, detail)
        if max_usd is not None and self._spent_usd + cost_usd > max_usd:
            spent = f"{self._spent_usd} of max_cost_usd={max_usd}"
            detail = f"not asked: {spent} are spent, and this clip costs {cost_usd}"
            return Failure(FailureReason.BUDGET_SPENT, detail)
        is_repeated, n_malformed, attempt = context.recall("submit") == key, 0, 1
        # A failed job counts too: the service may charge it.
        self._n_clips, self._spent_usd = self._n_clips + 1, self._spent_usd + cost_usd
        context.note("submit", key)
        headers = {"Idempotency-Key": key}
        while isinstance(
            reply := await self._send("POST", "videos", until_s, headers=headers, files=form), tuple
        ):
            failure, wait_s = reply
            is_repeated |= failure.reason in _LOST
            n_malformed += failure.reason in _MALFORMED
            pause_s = (wait_s or 0.0) + backoff_s(self._policy, key=key, attempt=attempt, seed=0)
            is_late = asyncio.get_running_loop().time() + pause_s >= until_s
            if wait_s is None or attempt == MAX_ATTEMPTS or n_malformed == _TRIES or is_late:
                if not (is_repeated and failure.reason in _LOST | _MALFORMED):
                    self._n_clips, self._spent_usd = self._n_clips - 1, self._spent_usd - cost_usd
                return replace(failure, detail=f"{failure.detail} (requests: {attempt})")
            await asyncio.sleep(pause_s)
            attempt += 1
        job = reply.get("id")
        if (
            not isinstance(job, str)
            or not job.isprintable()
            or "/" in job
            or job in {"", ".", ".."}
        ):
            detail = f"the reply has no id of a job: {_sanitise(reply)}"
            return Failure(FailureReason.MALFORMED_REPLY, detail)
        context.note("job", job)
        if is_repeated:
            logger.warning(
                "%s: job %s was submitted again under the same idempotency key, because a reply was lost; "
                "a service that ignores such keys may charge it twice",
                self.name,
                _sanitise(job),
            )
        return job, is_repeated

    async def _wait(self, job: str, until_s: float) -> dict[str, Any] | Failure:
        """Poll the job until it ends; return its last status reply, or a failure."""
        n_failed, n_missed, last = 0, 0, ""
        while (now_s := asyncio.get_running_loop().time()) < until_s:
            reply = await self._send("GET", f"videos/{quote(job, safe='')}", until_s)
            pause_s = self._keys.poll_s
            if isinstance(reply, tuple):
                failure, wait_s = reply
                n_failed += 1
                # A new job may be unknown at once.
                is_missed = failure.reason in _MALFORMED | {FailureReason.REQUEST_REJECTED}
                n_missed = n_missed + 1 if is_missed else 0
                last = failure.detail
                if n_missed == _TRIES or (wait_s is None and not is_missed):
                    return replace(failure, detail=f"job {_sanitise(job)} cannot be polled: {last}")
                jitter_s = backoff_s(self._policy, key=job, attempt=n_failed, seed=0)
                pause_s = max(pause_s, (wait_s or 0.0) + jitter_s)
            else:
                n_failed = n_missed = 0
                status = reply.get("status")
                if status == "completed":
                    return reply
                if status == "failed":
                    detail = f"job {_sanitise(job)} failed: {_get_error_text(reply)}"
                    return Failure(FailureReason.REFUSED, detail)
                last = f"the status is {_sanitise(status)!r}"
            await asyncio.sleep(max(0.0, min(pause_s, until_s - now_s)))
        detail = f"job {_sanitise(job)} did not end within {self._keys.deadline_s:g} s: {last}"
        return Failure(FailureReason.OUT_OF_TIME, detail)

    async def _download(self, job: str, folder: Path) -> Failure | None:
        """Download the clip of a job, again after a lost connection: the job is already paid for."""
        failure: Failure | None = None
        for attempt in range(1, _TRIES + 1):
            try:
                async with (
                    asyncio.timeout(self._keys.deadline_s),
                    self._http.stream("GET", f"videos/{quote(job, safe='')}/content") as response,
                ):
                    failure = await self._write_clip(response, folder)
            except TimeoutError:
                detail = f"the download took longer than {self._keys.deadline_s:g} s"
                return Failure(FailureReason.OUT_OF_TIME, detail)
            except Exception as error:  # noqa: BLE001  httpx2 lets errors of TLS and of headers through
                failure = convert_connection_error_to_failure(error)
            if failure is None or failure.reason not in _LOST or attempt == _TRIES:
                break
            await asyncio.sleep(self._keys.poll_s)
        return failure

    async def _write_clip(self, response: Any, folder: Path) -> Failure | None:
        """Write the body to a file; return a failure after which to discard the file."""
        max_bytes, n_bytes, head = self._keys.max_mb << 20, 0, b""
        too_large = Failure(FailureReason.TOO_LARGE, f"the clip exceeds {max_bytes} bytes")
        if response.status_code != HTTPStatus.OK:
            is_passing = not response.is_redirect
            reason = FailureReason.SERVER_ERROR if is_passing else FailureReason.NOT_NAMED
            return Failure(reason, f"the content has status {response.status_code}")
        if declares_larger_body(response, max_bytes):
            return too_large
        if failure := find_unexpected_encoding(response):
            return failure
        with OutputDirectory(folder).create(CLIP) as file:
            async for chunk in response.aiter_raw():
                n_bytes += len(chunk)
                if n_bytes > max_bytes:
                    return too_large
                head = head or chunk.lstrip()[:64]
                file.write(chunk)
        if head.startswith((b"<", b"{", b"[")):
            detail = f"the content is text, not a clip: {_sanitise(head)!r}"
            return Failure(FailureReason.MALFORMED_REPLY, detail)
        return None if head else Failure(FailureReason.EMPTY_REPLY, "the clip has no bytes")

    async def _send(
        self, method: str, path: str, until_s: float, **options: Any
    ) -> dict[str, Any] | tuple[Failure, float | None]:
        """Send one request; return the JSON object of its reply, or the failure.

        The number with the failure is the minimum seconds before a retry, `None` if a retry cannot help.
        """
        ends_at_s = min(until_s, asyncio.get_running_loop().time() + self._keys.attempt_s)
        try:
            async with (
                asyncio.timeout_at(ends_at_s),
                self._http.stream(method, path, **options) as response,
            ):
                reply = await read_http_reply(response)
        except TimeoutError:
            detail = f"no reply within {self._keys.attempt_s:g} s"
            return Failure(FailureReason.OUT_OF_TIME, detail), 0.0
        except Exception as error:  # noqa: BLE001  httpx2 lets errors of TLS and of headers through
            reply = convert_connection_error_to_failure(error)
        if isinstance(reply, Failure):
            return reply, None if reply.reason is FailureReason.NOT_NAMED else 0.0
        try:
            body = parse_json(reply.body)
        except InvalidValueError:
            body = None
        is_success = HTTPStatus.OK <= reply.status < HTTPStatus.MULTIPLE_CHOICES
        if is_success and isinstance(body, dict):
            return body
        text = _get_error_text(body) if isinstance(body, dict) else _sanitise(reply.body)
        wait_s: float | None = parse_retry_after(reply.retry_after, now=datetime.now(UTC))
        if is_success:
            reason = FailureReason.MALFORMED_REPLY
        elif reply.status == HTTPStatus.TOO_MANY_REQUESTS:
            reason = FailureReason.RATE_LIMITED
            wait_s = None if b'"insufficient_quota"' in reply.body else wait_s
        elif reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR or reply.status in _PASSING:
            reason = FailureReason.SERVER_ERROR
        else:
            is_key = reply.status == HTTPStatus.UNAUTHORIZED  # 403 may concern only this prompt
            reason = FailureReason.KEY_REJECTED if is_key else FailureReason.REQUEST_REJECTED
            wait_s = None
        return Failure(reason, f"status {reply.status}: {text}"), wait_s


def _get_error_text(reply: dict[str, Any]) -> str:
    error = reply.get("error", reply)
    return _sanitise(error.get("message", error) if isinstance(error, dict) else error)


def _sanitise(value: object) -> str:
    """Convert an untrusted value from a reply to one short line of text."""
    if isinstance(value, bytes):
        value = value[: 4 * _READABLE].decode(errors="replace")
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    line = sanitise_line(" ".join(text[: 4 * _READABLE].split()))
    return line if len(line) <= _READABLE else line[: _READABLE - 1] + "…"
