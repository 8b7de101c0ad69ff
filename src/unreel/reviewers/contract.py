"""Interface of reviewers, and the types of their requests.

`unreel.testing.reviewers` tests implementations.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Protocol

from unreel.core.answer import Reply
from unreel.core.clip import Clip
from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure
from unreel.core.question import Condition, Instrument

MAX_CLIPS = 2


class InputKind(StrEnum):
    """Kind of clip input that a reviewer can request, besides the clip's metadata."""

    FRAMES = "frames"
    CLIP = "clip"
    SOUND = "sound"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFrame:
    """One frame as a JPEG, with its index in the stream, its exact time and its shown size.

    The time counts from the first frame.
    """

    index: int
    at_s: Fraction
    width: int
    height: int
    jpeg: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class WholeClip:
    """Bytes of a clip's file, for reviewers that sample its frames themselves."""

    data: bytes = field(repr=False)
    mime: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipInput:
    """One clip with the inputs that the reviewer wants and the condition allows."""

    clip: Clip
    """Clip; its location is used for messages and recorded answers, and never sent to a server."""
    frames: tuple[ShownFrame, ...] = ()
    sound_wav: bytes | None = field(default=None, repr=False)
    whole: WholeClip | None = None

    @property
    def shown_size(self) -> tuple[int, int]:
        """Return width and height of the shown frames; of the clip if no frame is shown."""
        sized = self.frames[0] if self.frames else self.clip.facts.video
        return sized.width, sized.height


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRequest:
    """One question to a reviewer: prompt, and no clip, one clip, or two clips in order."""

    key: str
    """Key of the question for this reviewer, as `Question.key` returns it."""
    instrument: Instrument
    prompt: str
    inputs: tuple[ClipInput, ...]
    condition: Condition
    name: str = ""
    """Name of the clip or pair in a benchmark, to find recorded answers; never sent to a server."""
    system: str = ""
    """System message; only models behind a server get one."""
    frame_time: str = ""
    """Format of the time before each frame, with the field `seconds`; "" for the format of the model family."""

    def __post_init__(self) -> None:
        if len(self.inputs) > MAX_CLIPS:
            raise InvalidValueError(
                f"a request has at most {MAX_CLIPS} clips, not {len(self.inputs)}"
            )


class Reviewer(Protocol):
    """Interface of a reviewer, which answers concurrent requests within one event loop."""

    @property
    def name(self) -> str:
        """Return the stable name: an equal name means equal weights, decoding and input format."""

    @property
    def wants(self) -> frozenset[InputKind]:
        """Return the kinds of clip input to load; empty for a reviewer that needs only metadata."""

    def box_space(self, clip_input: ClipInput) -> str:
        """Return the box space of answers about `clip_input`, as `protocols.box_space.parse_box_space` reads it."""

    async def answer(self, request: ReviewRequest) -> Reply | Failure:
        """Answer the request `request` once; return a failure instead of raising it.

        Only a cancellation is raised.
        """

    async def close(self) -> None:
        """Close all connections. A second call has no effect."""
