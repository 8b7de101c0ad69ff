"""What one reviewer says of one clip: the question as it was put, and what the reply means."""

from dataclasses import dataclass
from typing import Any

from unreel.core.verdict import Unparsed, Verdict
from unreel.protocols.protocol import Mode, protocol
from unreel.protocols.wording import Wording
from unreel.reviewers.asking import Asked
from unreel.reviewers.contract import Exhibit


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion(Asked):
    """One question put to one reviewer: what it was shown, what came back, and what that says."""

    verdict: Verdict | None
    """What the text says; `None` without a text."""

    @property
    def exhibit(self) -> Exhibit | None:
        """The clip as it was shown; `None` where it could not be shown as the condition asks."""
        return self.exhibits[0] if self.exhibits else None

    @property
    def is_readable(self) -> bool:
        """True when the answer gives a label or a score; without one there is no verdict."""
        return self.verdict is not None and not isinstance(self.decision, Unparsed)

    @property
    def wording(self) -> Wording[Any, Any]:
        """The words of the instrument that was asked with."""
        return protocol(self.question.instrument.protocol).wording

    @property
    def decision(self) -> Any:
        """What the instrument asks before all else, as far as it was read; `None` without a text."""
        return None if self.verdict is None else self.wording.decision(self.verdict)


def opinion_of(asked: Asked, mode: Mode) -> Opinion:
    """`asked` with what its reply says."""
    return Opinion(
        reviewer=asked.reviewer,
        question=asked.question,
        prompt=asked.prompt,
        exhibits=asked.exhibits,
        box_space=asked.box_space,
        outcome=asked.outcome,
        cost_usd=asked.cost_usd,
        verdict=asked.read(mode),
    )
