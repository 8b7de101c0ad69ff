"""The order of texts, frames and clips in a conversation: one for servers, models of this machine and training."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from unreel.core.failure import Failure, FailureReason
from unreel.protocols.presentation import (
    TimeFormat,
    around_clips,
    mark_clip,
    mark_instant,
    shows_times,
)
from unreel.reviewers.contract import ClipInput, ReviewRequest, ShownFrame, WholeClip

Showing = Literal["frames", "video", "clip"]
"""Frames one by one, our frames as one video with the processor's own time marks, or the file itself."""


@dataclass(frozen=True, slots=True)
class PromptText:
    """A piece of text."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """One frame as a picture."""

    frame: ShownFrame


@dataclass(frozen=True, slots=True)
class VideoPart:
    """The frames of one clip as one video."""

    frames: tuple[ShownFrame, ...]


@dataclass(frozen=True, slots=True)
class FilePart:
    """A clip's own file."""

    whole: WholeClip


@dataclass(frozen=True, slots=True)
class AudioPart:
    """The sound of a clip."""

    wav: bytes = field(repr=False)


Part = PromptText | ImagePart | VideoPart | FilePart | AudioPart


def compose_message(
    sheet: ReviewRequest, *, form: Showing, times: TimeFormat
) -> tuple[Part, ...] | Failure:
    """Return the parts of the message of a request, or the reason why it cannot be sent.

    Single frames follow their timestamps if the protocol or the condition requires it, formatted by
    `times`.
    """
    if not sheet.exhibits:
        return (PromptText(sheet.prompt),)
    marked = shows_times(sheet.instrument.protocol, sheet.condition.marks)
    parts: list[Part] = []
    for number, exhibit in enumerate(sheet.exhibits, start=1):
        if len(sheet.exhibits) > 1:
            parts.append(PromptText(mark_clip(number)))
        shown = list(_iter_clip_parts(exhibit, form=form, times=times if marked else None))
        if not shown:
            missing = "clip" if form == "clip" else "frames"
            return request_rejected(
                f"no {missing} of clip {exhibit.clip.id[:12]} came with the sheet"
            )
        parts += shown
        if sheet.condition.audio == "on":
            if exhibit.sound_wav is None:
                return request_rejected(f"clip {exhibit.clip.id[:12]} has no sound")
            parts.append(AudioPart(exhibit.sound_wav))
    before, after = ([PromptText(said)] if said else [] for said in around_clips(sheet.prompt))
    return (*before, *parts, *after)


def request_rejected(reason: str) -> Failure:
    """Return the failure of a question that is not asked, with the reason."""
    return Failure(FailureReason.REQUEST_REJECTED, f"not asked: {reason}")


def _iter_clip_parts(
    exhibit: ClipInput, *, form: Showing, times: TimeFormat | None
) -> Iterator[Part]:
    match form:
        case "clip":
            if exhibit.whole is not None:
                yield FilePart(exhibit.whole)
        case "video":
            if exhibit.frames:
                yield VideoPart(exhibit.frames)
        case "frames":
            for frame in exhibit.frames:
                if times is not None:
                    yield PromptText(mark_instant(frame.at_s, times))
                yield ImagePart(frame)
