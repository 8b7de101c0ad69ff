"""Interface of the answer cache: each question is claimed before it is sent, so it is sent once."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """Stored text of a reviewer's answer, and the coordinate space of the boxes in it."""

    text: str
    box_space: str | None = None


class QuestionClaimState(Enum):
    """State of a question without a stored answer after a process tried to claim it."""

    OURS = "ours"
    """This process asks it now."""
    BUSY = "busy"
    """Another process is asking it."""
    INTERRUPTED = "interrupted"
    """The process that asked it ended before it stored the answer, and it must not be asked twice."""


class AnswerStore(Protocol):
    """Interface of a store of answers by question key; its methods may block and run in threads."""

    def find(self, key: str, /) -> CachedAnswer | None:
        """Return the stored answer to the question `key`; `None` if there is none."""

    def claim(self, key: str, /) -> CachedAnswer | QuestionClaimState:
        """Return the stored answer to the question `key`, or claim the question for this process."""

    def store(self, key: str, answer: CachedAnswer, /) -> None:
        """Store the answer to a claimed question and end the claim."""

    def release(self, key: str, /) -> None:
        """End this process's claim of a question that got no answer."""
