"""Request and result of a reviewer. `unreel.testing.reviewers` tests the contract."""

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Final, Protocol

from unreel.core.answer import Reply
from unreel.core.clip import Clip
from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure
from unreel.core.question import Condition, Instrument

MOST_EXHIBITS: Final = 2


class InputKind(StrEnum):
    """Kind of input that may be shown of a clip, besides its metadata."""

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
    """The file itself, for reviewers that sample frames on their own."""

    data: bytes = field(repr=False)
    mime: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipInput:
    """One clip as shown, without input that the reviewer does not want or the condition forbids."""

    clip: Clip
    """Its location is for messages and for recorded answers, never sent to a server."""
    frames: tuple[ShownFrame, ...] = ()
    sound_wav: bytes | None = field(default=None, repr=False)
    whole: WholeClip | None = None

    @property
    def shown_size(self) -> tuple[int, int]:
        """Return width and height of the shown frames; of the clip if no frame is shown."""
        shown = self.frames[0] if self.frames else self.clip.facts.video
        return shown.width, shown.height


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRequest:
    """One question as a reviewer receives it: one clip, two clips in the order shown, or text only."""

    key: str
    """`Question.key` for this reviewer."""
    instrument: Instrument
    prompt: str
    exhibits: tuple[ClipInput, ...]
    condition: Condition
    name: str = ""
    """What a benchmark calls the clip or pair: for recorded answers, never sent to a server."""

    def __post_init__(self) -> None:
        if len(self.exhibits) > MOST_EXHIBITS:
            msg = f"a sheet shows two clips at most, got {len(self.exhibits)}. Ask about each apart"
            raise InvalidValueError(msg)


class Reviewer(Protocol):
    """Answers sheets, many at a time within one event loop."""

    @property
    def name(self) -> str:
        """Return the stable name: an equal name means equal weights, decoding and input format."""
        ...

    @property
    def wants(self) -> frozenset[InputKind]:
        """Return the required kinds of input; empty for a reviewer that reads only the facts."""
        ...

    def box_space(self, exhibit: ClipInput) -> str:
        """Return the coordinate space of the boxes in the answers.

        `protocols.space.declare_space` defines the notation.
        """
        ...

    async def answer(self, sheet: ReviewRequest) -> Reply | Failure:
        """Answer `sheet` once. A failure is a return value; only a cancellation is raised."""
        ...

    async def close(self) -> None:
        """Let go of connections; harmless when called twice."""
        ...
