"""What one reviewer says of one clip: the question as it was put, and what the reply means."""

from dataclasses import dataclass

from unreel.core.judgement import Label
from unreel.core.verdict import (
    Position,
    PreferenceVerdict,
    RealismVerdict,
    RealityVerdict,
    TraceVerdict,
    Unparsed,
    Verdict,
)
from unreel.protocols.protocol import Mode
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
        return self.verdict is not None and not isinstance(main_part(self.verdict), Unparsed)


def main_part(verdict: Verdict) -> Label | int | Position | Unparsed:
    """What an instrument asks before all else: a label, a score, or a place in a pair."""
    match verdict:
        case TraceVerdict() | RealityVerdict():
            return verdict.label
        case RealismVerdict():
            return verdict.score
        case PreferenceVerdict():
            return verdict.real


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
