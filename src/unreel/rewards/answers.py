"""Interface of the answer cache: a question is claimed before it is asked, so it is asked once."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """Text of an answer, and the space of the boxes in it."""

    text: str
    box_space: str | None = None


class ClaimState(Enum):
    """Answer to a claim of a question that has no stored answer."""

    OURS = "ours"
    """This process asks it now."""
    BUSY = "busy"
    """Another process is asking it."""
    INTERRUPTED = "interrupted"
    """The process that asked it ended before it stored the answer, and it must not be asked twice."""


class AnswerStore(Protocol):
    """Store of answers by question key; methods may block and are called in threads."""

    def find(self, key: str, /) -> CachedAnswer | None:
        """Return the stored answer; `None` if there is none."""

    def claim(self, key: str, /) -> CachedAnswer | ClaimState:
        """Return the stored answer, or claim the question."""

    def store(self, key: str, answer: CachedAnswer, /) -> None:
        """Store the answer to a claimed question and end the claim."""

    def release(self, key: str, /) -> None:
        """End the claim of a question without an answer."""
