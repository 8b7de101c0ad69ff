"""Parts of a message: the order of texts, frames and clips, and the timestamps of a video's frames."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from unreel.core.failure import Failure, FailureReason
from unreel.protocols.presentation import (
    TimeFormat,
    format_frame_time,
    format_question_clip_heading,
    shows_frame_times,
    split_prompt_at_clips,
)
from unreel.reviewers.contract import ReviewRequest, ShownFrame, WholeClip

WRITES_TIMES = frozenset({"qwen3-vl", "videollama3"})
"""Families whose processor writes the timestamps of a video into the prompt."""
TIMED_FAMILIES = WRITES_TIMES | {"qwen2.5-vl"}
"""Families whose processor accepts timestamps of a video."""
_PATCH = 2
"""Number of frames in one temporal patch of Qwen models."""


@dataclass(frozen=True, slots=True)
class FrameTiming:
    """Frame times of a video: the i-th shown frame has index `indices[i]` at the frame rate `fps`."""

    fps: Fraction
    indices: tuple[int, ...]

    @property
    def seconds(self) -> tuple[Fraction, ...]:
        """Return the time of each frame in seconds, as the processor computes it."""
        return tuple(index / self.fps for index in self.indices)


def compute_exact_frame_timing(frames: Sequence[ShownFrame]) -> FrameTiming:
    """Compute the exact times of `frames`; the frame rate is the common denominator of the times."""
    rate = math.lcm(*(frame.at_s.denominator for frame in frames))
    return FrameTiming(Fraction(rate), tuple(int(frame.at_s * rate) for frame in frames))


def compute_even_frame_timing(frames: Sequence[ShownFrame]) -> FrameTiming:
    """Compute evenly spaced frame times with the mean interval of `frames`; the first index is 0."""
    length_s = frames[-1].at_s - frames[0].at_s
    rate = (len(frames) - 1) / length_s if length_s else Fraction(1)
    return FrameTiming(rate, tuple(range(len(frames))))


def explain_uneven_frame_timing(frames: Sequence[ShownFrame]) -> str:
    """Return why `frames` are not evenly spaced; "" if one interval describes their times.

    A frame may be half an interval off, due to rounding to frames of the clip. The first frame may
    be at most one interval after the clip's start.
    """
    timing = compute_even_frame_timing(frames)
    first, half_s = frames[0].at_s, 1 / timing.fps / 2
    off_s = max(abs(f.at_s - first - s) for f, s in zip(frames, timing.seconds, strict=True))
    if off_s > half_s:
        return f"a frame is {float(off_s):.2f} s off the even distance of {float(2 * half_s):.2f} s"
    if len(frames) > 1 and first > 2 * half_s:
        return f"the first frame comes {float(first):.2f} s after the clip's start"
    return ""


def compute_family_frame_timing(family: str, frames: Sequence[ShownFrame]) -> FrameTiming:
    """Compute the frame times of a video as the processor of the model family `family` needs them."""
    is_exact = family in WRITES_TIMES
    return compute_exact_frame_timing(frames) if is_exact else compute_even_frame_timing(frames)


def explain_unsupported_video(family: str, request: ReviewRequest) -> str:
    """Return why the clips of `request` cannot be sent as videos with correct times; "" if they can."""
    marks = request.condition.marks
    videos = [clip_input.frames for clip_input in request.inputs if clip_input.frames]
    if family in WRITES_TIMES and marks == "off":
        return "the processor writes the instants of a video, so marks cannot be off"
    if family == "qwen3-vl" and any(len(frames) < _PATCH for frames in videos):
        return "a video of this family needs at least two frames. Sample more, or train on frames"
    if family == "qwen2.5-vl" and shows_frame_times(request.instrument.protocol, marks):
        for reason in filter(None, map(explain_uneven_frame_timing, videos)):
            remedy = "Sample at a rate such as fps-2, or train it on frames"
            return f"a video of this family has one distance for all frames, and {reason}. {remedy}"
    return ""


Showing = Literal["frames", "video", "clip"]
"""Input form: single frames, these frames as one video with the processor's own timestamps, or the file itself."""


Part = str | ShownFrame | tuple[ShownFrame, ...] | WholeClip | bytes
"""A message part: text, one frame as an image, the frames of one clip as one video, the original file of a
clip, or its sound as WAV."""


def build_message_parts(
    request: ReviewRequest, *, form: Showing, times: TimeFormat
) -> tuple[Part, ...] | Failure:
    """Return the message parts of the request `request`, or a failure if an input is missing.

    The time of each single frame precedes it as text, if the protocol or the condition requires it.
    `times` is the format of that text.
    """
    if not request.inputs:
        return (request.prompt,)
    marked = shows_frame_times(request.instrument.protocol, request.condition.marks)
    parts: list[Part] = []
    for number, clip_input in enumerate(request.inputs, start=1):
        if len(request.inputs) > 1:
            parts.append(format_question_clip_heading(number))
        clip_parts: list[Part] = []
        if form == "clip" and clip_input.whole is not None:
            clip_parts = [clip_input.whole]
        elif form == "video" and clip_input.frames:
            clip_parts = [clip_input.frames]
        elif form == "frames":
            for frame in clip_input.frames:
                if request.frame_time:
                    clip_parts.append(request.frame_time.format(seconds=float(frame.at_s)))
                elif marked:
                    clip_parts.append(format_frame_time(frame.at_s, times))
                clip_parts.append(frame)
        if not clip_parts:
            missing = "clip" if form == "clip" else "frames"
            return build_rejected_request_failure(
                f"no {missing} of clip {clip_input.clip.id[:12]} came with the request"
            )
        parts += clip_parts
        if request.condition.audio == "on":
            if clip_input.sound_wav is None:
                return build_rejected_request_failure(
                    f"clip {clip_input.clip.id[:12]} has no sound"
                )
            parts.append(clip_input.sound_wav)
    before, after = split_prompt_at_clips(request.prompt)
    return tuple(part for part in (before, *parts, after) if part)


def build_rejected_request_failure(reason: str) -> Failure:
    """Return the failure of a question that is not sent to the reviewer, with the reason."""
    return Failure(FailureReason.REQUEST_REJECTED, f"not asked: {reason}")
