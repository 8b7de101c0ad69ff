"""Scoring of videos that arrive as PNG or JPEG files, one for each frame.

The files are decoded in a confined process: a hostile JPEG can take minutes.
"""

import asyncio
import io
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unreel.core.errors import InvalidValueError, MediaError
from unreel.core.failure import Failure, FailureReason
from unreel.core.settings import read_environment_settings
from unreel.media.access import open_file_sandbox
from unreel.media.messages import TaskReplyPayload, deliver_task_result
from unreel.rewards.service.gate import require_max_items
from unreel.rewards.service.request_items import (
    FileBytes,
    Frames,
    RewardRequestItem,
    build_frame_array,
)
from unreel.rewards.trainers.picture_task import COLOURS, LENGTH_BYTES, decode_picture_bundle
from unreel.webapp.refusals import InvalidRequestError, RequestRefusedError

if TYPE_CHECKING:
    from fastapi import Request

    from unreel.rewards.service.scoring import RewardService

_TASKS = "unreel.rewards.trainers.picture_task:TASKS"
_TASK = "decode"
_INVALID, _FAILED = 422, 503
_AT_ONCE = 2
"""Maximum number of videos whose pixels are in memory at the same time."""


class PictureListScorer:
    """Scorer of videos that are lists of PNG or JPEG files, one for each frame."""

    def __init__(self, service: "RewardService") -> None:
        self._service = service
        self._sandbox = open_file_sandbox(read_environment_settings(), tasks=_TASKS, needs=[_TASK])
        self._at_once = asyncio.Semaphore(_AT_ONCE)

    async def score(
        self,
        videos: Sequence[Sequence[bytes]],
        prompts: Sequence[str | None],
        fps: float,
        request: "Request",
    ) -> list[float]:
        """Return the reward of each video, a list of picture files.

        Raises:
            RequestRefusedError: The request is invalid, or a video has no reward; then none is returned.
        """
        if not videos or len(prompts) != len(videos):
            raise InvalidRequestError(
                f"{len(videos)} videos and {len(prompts)} prompts. Send as many of both"
            )
        require_max_items(len(videos), self._service.settings.max_items)
        items = []
        try:
            async with asyncio.timeout(self._service.settings.deadline_s):
                for index, pictures in enumerate(videos):
                    async with self._at_once:
                        video = await asyncio.to_thread(self._encode, pictures, fps)
                    items.append(
                        RewardRequestItem(video=video, id=str(index), prompt=prompts[index])
                    )
        except (MediaError, InvalidValueError) as error:
            raise RequestRefusedError(
                _INVALID, "undecodable", f"video {len(items)}: {error}"
            ) from None
        except TimeoutError:
            raise RequestRefusedError(
                _FAILED, "out-of-time", "the frames were not decoded before the deadline", 1.0
            ) from None
        values = []
        for item, reward in await self._service.score_request(items, request.state):
            if reward.value is None:
                reason = reward.failure.reason.value if reward.failure else "failed"
                raise RequestRefusedError(
                    _FAILED, reason, f"video {item.id}: {reward.failure}", 1.0
                )
            values.append(reward.value)
        return values

    def _encode(self, pictures: Sequence[bytes], fps: float) -> FileBytes:
        """Encode picture files as a video file, which takes less memory than their pixels."""
        return FileBytes(build_frame_array(self._decode(pictures), fps).read())

    def _decode(self, pictures: Sequence[bytes]) -> Frames:
        """Decode picture files of one size, and return their pixels (T, H, W, 3)."""
        max_bytes = self._service.settings.max_request_bytes
        bundle = b"".join(len(each).to_bytes(LENGTH_BYTES, "little") + each for each in pictures)
        frames: list[Frames] = []

        def add_frame(payload: TaskReplyPayload) -> None:
            shape = int(payload.header["height"]), int(payload.header["width"]), COLOURS
            if len(frames) >= len(pictures) or (frames and frames[0].shape != shape):
                raise MediaError(FailureReason.UNDECODABLE, "the frames differ in size")
            if len(pictures) * math.prod(shape) > max_bytes:
                raise MediaError(
                    FailureReason.TOO_LARGE,
                    f"{len(pictures)} frames have more than {max_bytes} bytes of pixels",
                )
            frames.append(np.frombuffer(payload.blobs[0], np.uint8).reshape(shape))

        if self._service.settings.trusted:
            deliver_task_result(decode_picture_bundle(io.BytesIO(bundle), {}), add_frame)
        else:
            with tempfile.NamedTemporaryFile(prefix="unreel-pictures-") as file:
                file.write(bundle)
                file.flush()
                outcome = self._sandbox(_TASK, Path(file.name), {}, add_frame)
            if isinstance(outcome, Failure):
                raise MediaError(outcome.reason, outcome.detail)
        if not frames or len(frames) < len(pictures):
            raise MediaError(FailureReason.NO_VIDEO, "a video needs at least one frame")
        return np.stack(frames)
