"""Reviewer with scripted answers, for tests of rewards."""

from collections.abc import Callable
from dataclasses import dataclass, field

from unreel.core.answer import Reply
from unreel.core.failure import Failure
from unreel.reviewers.contract import ClipInput, InputKind, ReviewRequest

FAKE = (
    "FAKE<coordinates>[48, 32, 96, 64]</coordinates><start_time>0.25</start_time>"
    "<explanation>It floats.</explanation>"
)
"""A quarter of the width and height of a clip of 192 x 128, from 0.25 s on."""
ANSWERS = {
    "trace": FAKE,
    "reality": "<answer>0</answer>",
    "realism": "<answer>3</answer>",
    "preference": "<answer>1</answer>",
    "locate": '[{"start": 0.25, "end": 0.5}]',
}


@dataclass
class ScriptedReviewer:
    """Reviewer that answers by protocol, or by a function, and counts its questions."""

    name: str = "scripted"
    answers: dict[str, str | Failure] = field(default_factory=lambda: dict(ANSWERS))
    act: Callable[[ReviewRequest], Reply | Failure] | None = None
    keys: list[str] = field(default_factory=list)
    wants: frozenset[InputKind] = frozenset()
    closed: int = 0

    def box_space(self, clip_input: ClipInput) -> str:
        return "pixel"

    async def answer(self, request: ReviewRequest) -> Reply | Failure:
        self.keys.append(request.key)
        if self.act is not None:
            return self.act(request)
        answer = self.answers[request.instrument.protocol]
        return answer if isinstance(answer, Failure) else Reply(text=answer)

    async def close(self) -> None:
        self.closed += 1
