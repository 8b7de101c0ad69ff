"""Jobs of a video service: submitted once, stored before polling, and polled until they end."""

import asyncio
import json
import logging
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

from PIL import Image

from unreel.core.content_ids import digest
from unreel.core.failure import Failure, FailureReason
from unreel.core.retry import RetryPolicy, backoff_s
from unreel.creators.contract import ClipBrief, CreatorContext
from unreel.creators.endpoint.client import (
    RetryableServiceRequest,
    ServiceReply,
    VideoServiceClient,
    VideoServiceFailure,
    call_with_retries,
    read_loop_clock_s,
    sanitise_reply_value,
)
from unreel.creators.endpoint.request_template import (
    VideoGenerationRequest,
    fill_body_template,
    fill_job_path,
    look_up_reply_value,
    parse_replied_job_id,
)
from unreel.creators.endpoint.service import GenerationLimits, VideoServiceApi
from unreel.network.http_client import HttpReply

logger = logging.getLogger(__name__)

SUBMIT: Final = "submit"
"""Key of the note with a job's idempotency key, which is stored before the job is submitted."""
JOB: Final = "job"
"""Key of the note with the job's id, stored on receipt: a restarted run polls the job instead of paying again."""
ROUND: Final = "round"
"""Key of the note with the number of failed jobs of the brief; each new job has its own idempotency key."""
_MISSES: Final = 3
"""Maximum number of polls in a row with 404, 410 or a malformed reply: a new job may not be found at once."""
_UNSURE: Final = frozenset(
    {
        FailureReason.CONNECTION_LOST,
        FailureReason.OUT_OF_TIME,
        FailureReason.MALFORMED_REPLY,
        FailureReason.REPLY_TOO_LARGE,
        FailureReason.SERVER_ERROR,
    }
)
"""Errors after which it is unknown whether the service accepted the job."""


@dataclass(frozen=True, slots=True)
class VideoServiceJob:
    """Job that a video service has accepted."""

    id: str
    again: bool = False
    """Whether it was submitted more than once, under one idempotency key, because a reply was lost."""


@dataclass(frozen=True, slots=True)
class _SubmissionOutcome:
    outcome: ServiceReply | VideoServiceFailure
    unsure: bool
    """Whether the service may have accepted one of the requests although its reply was lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoServiceJobManager:
    """Manager that submits and polls a service's jobs; ids are stored, so no clip is paid twice."""

    creator: str
    api: VideoServiceApi
    client: VideoServiceClient
    purse: GenerationLimits
    patience: RetryPolicy
    poll_s: float

    async def submit(
        self, order: VideoGenerationRequest, workplace: CreatorContext, until_s: float
    ) -> VideoServiceJob | Failure:
        """Return the job for the request `order`: one that an earlier process submitted, or a new one."""
        known = workplace.recall(JOB)
        if known:
            return VideoServiceJob(known)
        body = self._body(order)
        if isinstance(body, Failure):
            return body
        key = self._key(order.brief, workplace)
        again = workplace.recall(SUBMIT) == key
        refused = self.purse.reserve(order.n_seconds)
        if refused is not None:
            return refused
        workplace.note(SUBMIT, key)
        posted = await self._post(body, key, until_s)
        if isinstance(posted.outcome, VideoServiceFailure):
            unsure = (posted.unsure or again) and posted.outcome.failure.reason in _UNSURE
            if not unsure:
                self.purse.release(order.n_seconds)
            return posted.outcome.failure
        return self._accept(posted.outcome, workplace, again=again or posted.unsure)

    async def wait(self, job: VideoServiceJob, until_s: float) -> ServiceReply | Failure:
        """Poll the job until it ends; return its last status reply, or a failure."""
        misses, last, attempt = 0, "", 0
        while read_loop_clock_s() < until_s:
            outcome = await call_with_retries(self._look(job, until_s))
            if not isinstance(outcome, VideoServiceFailure):
                misses = attempt = 0
                ended = self._ended(job, outcome)
                if ended is not None:
                    return ended
                last = f"its state is {sanitise_reply_value(look_up_reply_value(outcome, self.api.state))!r}"
                await self._pause(self.poll_s, until_s)
                continue
            attempt += 1
            misses = misses + 1 if outcome.absent or outcome.makes_no_sense else 0
            last = outcome.failure.detail
            if outcome.final or misses >= _MISSES:
                return _build_job_failure(job, outcome)
            jitter_s = backoff_s(self.patience, key=job.id, attempt=attempt, seed=0)
            await self._pause(max(self.poll_s, outcome.wait_s + jitter_s), until_s)
        detail = f"job {sanitise_reply_value(job.id)} did not end within {self.patience.deadline_s:g} s: {last}"
        return Failure(FailureReason.OUT_OF_TIME, detail)

    def forget(self, workplace: CreatorContext) -> None:
        """Remove the stored id of a failed job, so that a retry submits a new job."""
        workplace.note(ROUND, str(self._round(workplace) + 1))
        workplace.note(JOB, "")

    def _body(self, order: VideoGenerationRequest) -> bytes | Failure:
        lacks = order.lacks
        if lacks:
            return Failure(FailureReason.REQUEST_REJECTED, f"not asked: the brief has no {lacks}")
        try:
            return json.dumps(fill_body_template(self.api.body, order.values())).encode()
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            detail = f"not asked: the brief's first frame is no picture ({type(error).__name__})"
            return Failure(FailureReason.UNDECODABLE, detail)

    async def _post(self, body: bytes, key: str, until_s: float) -> _SubmissionOutcome:
        unsure = False

        async def send() -> HttpReply | Failure:
            nonlocal unsure
            # Set first: the service may have accepted the job even if this request is interrupted.
            before, unsure = unsure, True
            sent = await self.client.post(self.api.submit, body, key=key)
            last = isinstance(sent, Failure) or sent.status >= HTTPStatus.INTERNAL_SERVER_ERROR
            unsure = before or last
            return sent

        outcome = await call_with_retries(
            RetryableServiceRequest(send=send, key=key, until_s=until_s, patience=self.patience)
        )
        return _SubmissionOutcome(outcome, unsure)

    def _accept(
        self, reply: ServiceReply, workplace: CreatorContext, *, again: bool
    ) -> VideoServiceJob | Failure:
        job = parse_replied_job_id(reply, self.api.id)
        if job is None:
            detail = f"the reply has no job at {self.api.id!r}: {sanitise_reply_value(reply)}"
            return Failure(FailureReason.MALFORMED_REPLY, detail)
        workplace.note(JOB, job)
        if again:
            logger.warning(
                "%s: job %s was submitted again under the same idempotency key, because a reply was lost; "
                "a service that ignores such keys may charge it twice",
                self.creator,
                sanitise_reply_value(job),
            )
        return VideoServiceJob(job, again=again)

    def _look(self, job: VideoServiceJob, until_s: float) -> RetryableServiceRequest:
        path = fill_job_path(self.api.status, job.id)
        return RetryableServiceRequest(
            send=lambda: self.client.get(path),
            key=job.id,
            until_s=until_s,
            patience=self.patience,
            most=1,
        )

    def _ended(self, job: VideoServiceJob, reply: ServiceReply) -> ServiceReply | Failure | None:
        state = str(look_up_reply_value(reply, self.api.state)).lower()
        if state in {word.lower() for word in self.api.done}:
            return reply
        if state in {word.lower() for word in self.api.failed}:
            reason = sanitise_reply_value(look_up_reply_value(reply, self.api.error))
            detail = f"job {sanitise_reply_value(job.id)} ended as {sanitise_reply_value(state)}: {reason}"
            return Failure(FailureReason.REFUSED, detail)
        return None

    def _key(self, brief: ClipBrief, workplace: CreatorContext) -> str:
        number = str(self._round(workplace))
        return digest(self.creator, brief.id, brief.setting.value, str(brief.seed), number)

    def _round(self, workplace: CreatorContext) -> int:
        text = workplace.recall(ROUND) or ""
        return int(text) if text.isdecimal() else 0

    async def _pause(self, wait_s: float, until_s: float) -> None:
        await asyncio.sleep(max(0.0, min(wait_s, until_s - read_loop_clock_s())))


def _build_job_failure(job: VideoServiceJob, setback: VideoServiceFailure) -> Failure:
    failure = setback.failure
    state = "is not known to the service any more" if setback.absent else "cannot be looked after"
    return replace(failure, detail=f"job {sanitise_reply_value(job.id)} {state}: {failure.detail}")
