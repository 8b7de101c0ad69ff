"""An example as other trainers read one: a text with marks where media go, the media, and the answer."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from unreel.core.failure import Failure, FailureReason
from unreel.reviewers.message_parts import FilePart, ImagePart, Part, PromptText, VideoPart
from unreel.training.examples.example import ShownExample

IMAGE: Final = "<image>"
VIDEO: Final = "<video>"
_PLACE: Final = re.compile(r"<(?:image|video|audio)> ?")
_OWN: Final = re.compile(r"<(?:image|video|audio)>|<\|")
"""What these trainers replace by media, and how the marks of their models' turns begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerConversation:
    """One row for a trainer."""

    lesson: ShownExample
    asked: str
    """The question with `<image>` or `<video>` where each of the media goes."""
    images: tuple[str, ...] = ()
    """Paths below the folder."""
    videos: tuple[str | tuple[str, ...], ...] = ()
    """A path each, or the paths of its frames."""
    instants: tuple[Fraction, ...] = field(default=(), repr=False)
    """Of the frames that were taken here."""

    @property
    def answer(self) -> str:
        """Return the target answer."""
        return self.lesson.target

    def by_role(self) -> dict[str, Any]:
        """Return the row in the format of chat servers: messages with roles, and lists of media."""
        turns = [
            {"role": "user", "content": self.asked},
            {"role": "assistant", "content": self.answer},
        ]
        return {"messages": turns} | self._media("videos", "images")

    def by_speaker(self) -> dict[str, Any]:
        """Return the row in LLaVA's format: messages by speaker, and media lists with singular names."""
        turns = [{"from": "human", "value": self.asked}, {"from": "gpt", "value": self.answer}]
        return self._media("video", "image") | {"conversations": turns}

    def _media(self, videos: str, images: str) -> dict[str, Any]:
        return {videos: list(self.videos)} if self.videos else {images: list(self.images)}


@dataclass(frozen=True, slots=True)
class MediaPart:
    """Media files of one part, as named in the conversation."""

    paths: tuple[str, ...]


def build_conversation(
    lesson: ShownExample, parts: Sequence[Part], places: Sequence[MediaPart]
) -> TrainerConversation | Failure:
    """Build the row of `lesson`; its media files are at `places`, in the order of `parts`.

    Media marks in the prompt text are removed and each clip gets its own mark: otherwise these
    trainers would expect a second clip.
    """
    if found := _OWN.search(lesson.target):
        why = f"not taught: its answer holds {found[0]!r}, a mark of the trainer's own"
        return Failure(FailureReason.REQUEST_REJECTED, why)
    asked: list[str] = []
    images: list[str] = []
    videos: list[str | tuple[str, ...]] = []
    instants: list[Fraction] = []
    left = iter(places)
    for part in parts:
        match part:
            case PromptText(text):
                asked.append(_PLACE.sub("", text))
            case ImagePart(frame):
                asked.append(IMAGE)
                images += next(left).paths
                instants.append(frame.at_s)
            case VideoPart(frames):
                asked.append(VIDEO)
                videos.append(next(left).paths)
                instants += [frame.at_s for frame in frames]
            case FilePart():
                asked.append(VIDEO)
                videos += next(left).paths
            case _:
                why = "not taught: these trainers are given no sound"
                return Failure(FailureReason.REQUEST_REJECTED, why)
    return TrainerConversation(
        lesson=lesson,
        asked="".join(asked),
        images=tuple(images),
        videos=tuple(videos),
        instants=tuple(instants),
    )
