"""Creator that makes each clip by a job at a video service."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Final

from unreel.core.errors import raise_if_machine_error
from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.core.retry import RetryPolicy
from unreel.core.server_keys import parse_server_url
from unreel.creators.contract import (
    ClipBrief,
    ClipClass,
    CreatorContext,
    CreatorInput,
    GeneratedClip,
)
from unreel.creators.endpoint.client import (
    ClipDownloadRedirect,
    ServiceReply,
    VideoServiceClient,
    sanitise_reply_value,
)
from unreel.creators.endpoint.jobs import VideoServiceJob, VideoServiceJobManager
from unreel.creators.endpoint.request_template import (
    VideoGenerationRequest,
    build_video_generation_request,
    fill_job_path,
    look_up_reply_value,
)
from unreel.creators.endpoint.service import GenerationLimits, VideoServiceApi, VideoServiceEndpoint


def check_download_host(url: str, hosts: Iterable[str]) -> Failure | None:
    """Return a failure if `url` is at none of `hosts`, each a name with its port unless that is the default."""
    try:
        server = parse_server_url(url.partition("?")[0].partition("#")[0])
    except ValueError:
        return Failure(FailureReason.NOT_NAMED, "the clip's address cannot be read")
    if str(server) in {host.lower() for host in hosts}:
        return None
    detail = f"the clip is at {server}, which download_hosts does not name"
    return Failure(FailureReason.NOT_NAMED, detail)


CLIP: Final = "clip.mp4"
_TRIES: Final = 3
_HOPS: Final = 3
_AGAIN: Final = frozenset(
    {FailureReason.CONNECTION_LOST, FailureReason.SERVER_ERROR, FailureReason.NOT_A_FILE}
)
"""Reasons to retry a download, such as a partial file or a server error: the job is already paid for."""
_OVER: Final = frozenset({FailureReason.REFUSED, FailureReason.REQUEST_REJECTED})
"""Reasons after which a job can never return a clip, so that its stored id is removed."""
_HEAD: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoServiceLimits:
    """Limits for using a video service: retries, polling, clip size, download hosts and connections."""

    patience: RetryPolicy
    poll_s: float
    max_bytes: int
    download_hosts: tuple[str, ...] = ()
    """Hosts from which a clip may be downloaded, besides the service's own."""
    max_connections: int = 16


class EndpointCreator:
    """Creator that makes clips by jobs at one video service."""

    def __init__(  # noqa: PLR0913  what it is, where it is, and the terms of its work
        self, name: str, *, model: str, api: VideoServiceApi, way: VideoServiceEndpoint, terms: VideoServiceLimits, purse: GenerationLimits,
        settings: frozenset[CreatorInput] = frozenset(CreatorInput),
    ) -> None:  # fmt: skip
        self._name = name
        self._model = model
        self._api = api
        self._way = way
        self._terms = terms
        self._purse = purse
        self._settings = settings
        self._client = VideoServiceClient(way, max_connections=terms.max_connections)
        self._desk = VideoServiceJobManager(
            creator=name,
            api=api,
            client=self._client,
            purse=purse,
            patience=terms.patience,
            poll_s=terms.poll_s,
        )

    def __repr__(self) -> str:
        return f"EndpointCreator({self._name!r})"

    @property
    def name(self) -> str:
        return self._name

    @property
    def side(self) -> ClipClass:
        return ClipClass.GENERATED

    @property
    def settings(self) -> frozenset[CreatorInput]:
        return self._settings

    async def make(self, brief: ClipBrief, workplace: CreatorContext) -> GeneratedClip | Failure:
        try:
            outcome = await self._make(brief, workplace)
        except Exception as error:  # noqa: BLE001  what nobody foresaw costs one clip, not the season
            raise_if_machine_error(error)
            outcome = Failure(FailureReason.STAGE_FAILED, f"{type(error).__name__}: {error}")
        if isinstance(outcome, Failure):
            return replace(outcome, detail=self._way.redact(outcome.detail))
        return outcome

    async def close(self) -> None:
        await self._client.close()

    async def _make(self, brief: ClipBrief, workplace: CreatorContext) -> GeneratedClip | Failure:
        if brief.setting not in self._settings:
            detail = f"not asked: it does not start from {brief.setting.value}"
            return Failure(FailureReason.REQUEST_REJECTED, detail)
        until_s = asyncio.get_running_loop().time() + self._terms.patience.deadline_s
        order = build_video_generation_request(brief, self._api, model=self._model)
        job = await self._desk.submit(order, workplace, until_s)
        if isinstance(job, Failure):
            return job
        reply = await self._desk.wait(job, until_s)
        if isinstance(reply, Failure):
            if reply.reason in _OVER:
                self._desk.forget(workplace)
            return reply
        file = await self._take(job, reply, workplace)
        return file if isinstance(file, Failure) else self._made(file, order, job, reply)

    def _made(
        self, file: Path, order: VideoGenerationRequest, job: VideoServiceJob, reply: ServiceReply
    ) -> GeneratedClip:
        version = look_up_reply_value(reply, self._api.version)
        parameters: dict[str, str | int | float | bool] = {
            "service": str(self._way.server),
            "model": self._model,
            "size": f"{order.width}x{order.height}",
            "seconds": order.n_seconds,
            "job": job.id,
        }
        if job.again:
            parameters["submitted_again"] = True
        return GeneratedClip(
            file=file,
            model=sanitise_reply_value(version)
            if isinstance(version, str) and version
            else self._model,
            parameters=parameters,
            cost_usd=self._cost(order),
        )

    def _cost(self, order: VideoGenerationRequest) -> Decimal | None:
        return self._purse.cost_usd(order.n_seconds)

    async def _take(
        self, job: VideoServiceJob, reply: ServiceReply, workplace: CreatorContext
    ) -> Path | Failure:
        url = self._address(job, reply)
        if isinstance(url, Failure):
            return url
        outcome: Failure | None = None
        for _ in range(_TRIES):
            outcome = await self._copy(url, workplace)
            if outcome is None:
                return _check_clip_file(workplace.folder / CLIP)
            if outcome.reason not in _AGAIN:
                break
            await asyncio.sleep(self._terms.poll_s)
        assert outcome is not None  # noqa: S101  at least one try was made
        return outcome

    def _address(self, job: VideoServiceJob, reply: Mapping[str, object]) -> str | Failure:
        if self._api.content:
            return self._client.resolve(fill_job_path(self._api.content, job.id))
        value = look_up_reply_value(reply, self._api.result)
        first = value[0] if isinstance(value, list) and value else value
        if isinstance(first, str) and first.strip():
            return self._client.resolve(first.strip())
        detail = (
            f"job {sanitise_reply_value(job.id)} is done and has no clip at {self._api.result!r}"
        )
        return Failure(FailureReason.MALFORMED_REPLY, detail)

    async def _copy(self, url: str, workplace: CreatorContext) -> Failure | None:
        """Download the clip at `url` into the context's folder; only the service itself gets the API key."""
        for _ in range(_HOPS):
            if not self._client.owns(url):
                refused = check_download_host(url, self._terms.download_hosts)
                return refused or await workplace.fetch(url, workplace.folder / CLIP)
            outcome = await self._download(url, workplace)
            if not isinstance(outcome, ClipDownloadRedirect):
                return outcome
            url = outcome.url
        return Failure(FailureReason.NOT_A_FILE, "the clip's address leads on and on")

    async def _download(
        self, url: str, workplace: CreatorContext
    ) -> Failure | ClipDownloadRedirect | None:
        folder, limit_s = OutputDirectory(workplace.folder), self._terms.patience.deadline_s
        try:
            async with asyncio.timeout(limit_s):
                with folder.create(CLIP) as file:
                    return await self._client.download(url, file, max_bytes=self._terms.max_bytes)
        except TimeoutError:
            return Failure(FailureReason.OUT_OF_TIME, f"the clip took longer than {limit_s:g} s")


def _check_clip_file(file: Path) -> Path | Failure:
    """Return the downloaded `file`; a failure if it is empty or text, such as HTML or a JSON error."""
    with file.open("rb") as opened:
        head = opened.read(_HEAD).lstrip()
    if head.startswith((b"<", b"{", b"[")):
        detail = (
            f"words came, and not a clip: {sanitise_reply_value(head.decode(errors='replace'))!r}"
        )
        return Failure(FailureReason.MALFORMED_REPLY, detail)
    return file if head else Failure(FailureReason.EMPTY_REPLY, "the clip has no bytes")
