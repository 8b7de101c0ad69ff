"""Interface of stores of paid answers by question key, and an implementation in memory.

`unreel.testing.answer_stores` tests implementations.
"""

from collections import OrderedDict
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Protocol

from unreel.catalogue.owner_prompts import parse_answer
from unreel.core.answer import Reply
from unreel.core.failure import Failure
from unreel.core.question import Question
from unreel.core.verdict import Verdict
from unreel.protocols.protocol import Mode, get_protocol
from unreel.reviewers.contract import ClipInput

_REMEMBERED = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """Reply of a reviewer, and the coordinate space of the boxes in it."""

    reply: Reply
    box_space: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestionResult:
    """Result of one question to one reviewer: the clip inputs that were sent, and the reply."""

    reviewer: str
    question: Question
    prompt: str
    inputs: tuple[ClipInput, ...]
    """Inputs that were sent; empty if the clips could not be loaded as the condition requires."""
    box_space: str | None
    """Coordinate space of the boxes in the reply; `None` if no input was sent."""
    outcome: Reply | Failure
    cost_usd: Decimal | None
    """Cost of the request; `None`, not 0, if its tokens or their price are unknown."""

    @property
    def key(self) -> str:
        """Return the key under which a run stores this question to this reviewer."""
        return self.question.key(self.reviewer)

    def read(self, mode: Mode) -> Verdict | None:
        """Parse the reply into a verdict; return `None` without a reply or clip input."""
        if isinstance(self.outcome, Failure) or not self.inputs:
            return None
        return parse_answer(
            self.outcome.text,
            get_protocol(self.question.instrument.protocol),
            prompt=self.question.condition.prompt,
            mode=mode,
            box_space=self.box_space,
            size=self.inputs[0].clip.size,
        )


class QuestionClaim(Enum):
    """State of a question without a stored answer after a process tried to claim it."""

    OURS = "ours"
    """Claimed by this process, which must ask it now."""
    BUSY = "busy"
    """Claimed by another process that is asking it."""
    INTERRUPTED = "interrupted"
    """Claimed by a process that ended without storing the answer; the question must not be asked twice."""


class AnswerStore(Protocol):
    """Interface of a store of answers by question key; its methods may block and run in threads.

    Failures are not stored.
    """

    def find(self, key: str, /) -> StoredAnswer | None:
        """Return the stored answer to the question `key`; `None` if there is none."""

    def claim(self, key: str, /) -> StoredAnswer | QuestionClaim:
        """Return the stored answer to the question `key`, or claim the question for this process."""

    def store(self, result: AskedQuestionResult, reply: Reply, /) -> None:
        """Store the reply of a claimed question and end the claim."""

    def release(self, key: str, /) -> None:
        """End this process's claim of a question that got no answer."""


class MemoryAnswerStore:
    """Store of the last 4,096 answers in the memory of this process."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, StoredAnswer] = OrderedDict()

    def find(self, key: str, /) -> StoredAnswer | None:
        """Return the stored answer; the least recently stored one is dropped first."""
        return self._answers.get(key)

    def claim(self, key: str, /) -> StoredAnswer | QuestionClaim:
        """Return the stored answer, or claim the question."""
        return self.find(key) or QuestionClaim.OURS

    def store(self, result: AskedQuestionResult, reply: Reply, /) -> None:
        """Store the reply, and drop the oldest one if the store is full."""
        self._answers[result.key] = StoredAnswer(reply=reply, box_space=result.box_space)
        if len(self._answers) > _REMEMBERED:
            self._answers.popitem(last=False)

    def release(self, key: str, /) -> None:
        """Do nothing, because a process does not claim a question twice."""
