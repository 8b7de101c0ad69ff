"""Decoding of requested frames of a clip, with a check of each frame's timestamp."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from typing import BinaryIO

import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from unreel.core.errors import MediaError
from unreel.core.failure import FailureReason
from unreel.media.container import OpenClip, open_clip, translate_media_errors
from unreel.media.probe import get_clockwise_rotation
from unreel.media.timeline import FrameTimeline

Rgb = NDArray[np.uint8]
"""Pixels of a picture: an array of height x width x 3, with red first."""


@dataclass(frozen=True, slots=True, eq=False)
class DecodedFrame:
    """One decoded frame: index in the clip, time after the first frame, and pixels."""

    index: int
    at_s: Fraction
    rgb: Rgb = field(repr=False)


def decode_frames(
    file: BinaryIO,
    timeline: FrameTimeline,
    *,
    indices: Sequence[int],
    max_pixels: int,
    clip: OpenClip | None = None,
) -> Iterator[DecodedFrame]:
    """Yield the frames of the clip at `indices` (rising), each checked to have its exact timestamp.

    Every frame from the decoder must be the next one of the timeline; otherwise `MediaError` names
    it. The decoder seeks only if there is a key frame between it and the next wanted frame. `clip`
    is the clip as already opened from `file`.
    """
    left = list(indices)
    attempts: list[tuple[AbstractContextManager[OpenClip], bool]]
    attempts = [(open_clip(file, max_pixels=max_pixels), may_jump) for may_jump in (True, False)]
    if clip is not None and clip.can_seek:
        attempts.insert(0, (nullcontext(clip), True))
    for opening, may_jump in attempts:
        walk = None
        try:
            with translate_media_errors(), opening as opened:
                walk = _VerifyingDecoder(opened, timeline, may_jump=may_jump and opened.can_seek)
                if opened is clip:
                    walk.rewind()
                while left:
                    frame = walk.to(left[0])
                    yield DecodedFrame(
                        left.pop(0), timeline.at_s(walk.position - 1), read_rotated_pixels(frame)
                    )
                return
        except MediaError:
            # A seek may miss its key frame, or reach one that depends on earlier frames:
            # decoding from the start shows whether the clip or the seek was at fault.
            if walk is None or not walk.jumped:
                raise


def read_rotated_pixels(frame: VideoFrame) -> Rgb:
    """Return the pixels of `frame`, rotated as the container specifies."""
    rgb: Rgb = frame.to_ndarray(format="rgb24", threads=1).astype(np.uint8, copy=False)
    turn = get_clockwise_rotation(frame)
    return np.ascontiguousarray(np.rot90(rgb, -turn // 90)) if turn else rgb


class _VerifyingDecoder:
    def __init__(self, clip: OpenClip, timeline: FrameTimeline, *, may_jump: bool) -> None:
        self._clip = clip
        self._timeline = timeline
        self._may_jump = may_jump
        self._frames = clip.container.decode(clip.stream)
        self._landing = False
        self.position = 0
        self.jumped = False

    def to(self, index: int) -> VideoFrame:
        """Decode up to the frame `index`, which must be after the current position, and return it."""
        key = self._timeline.key_before(index)
        if self._may_jump and key > self.position:
            self._jump(key)
        while True:
            frame = self._step()
            if self.position > index:
                if frame.is_corrupt:
                    raise _build_undecodable_error(f"frame {index} is damaged")
                return frame

    def rewind(self) -> None:
        """Seek back to the first frame of the clip."""
        self._jump(0)

    def _jump(self, key: int) -> None:
        self._clip.container.seek(self._timeline.ticks[key], stream=self._clip.stream)
        self._frames = self._clip.container.decode(self._clip.stream)
        self.position, self.jumped, self._landing = key, True, True

    def _step(self) -> VideoFrame:
        planned_s = self._timeline.presented_s(self.position)
        for frame in self._frames:
            if frame.pts is None or frame.time_base is None:
                at_s = None
            else:
                at_s = frame.pts * frame.time_base
            if self._landing and at_s is not None and at_s < planned_s:
                continue  # A frame between the position after the seek and the key frame.
            self._landing = False
            if at_s != planned_s:
                raise _build_undecodable_error(
                    f"frame {self.position} came out at {at_s} s instead of {planned_s} s"
                )
            self.position += 1
            return frame
        raise _build_undecodable_error(
            f"the decoder stopped before frame {self.position} at {planned_s} s"
        )


def _build_undecodable_error(detail: str) -> MediaError:
    return MediaError(FailureReason.UNDECODABLE, detail)
