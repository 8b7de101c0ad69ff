"""Parsed text of an answer, with `Unparsed` for missing parts, and the rule by which it counts as correct."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from unreel.core.box import Box
from unreel.core.failure import Failure
from unreel.core.judgement import ErrorFamily, Label
from unreel.core.trace import Trace

READABLE = 120
"""Maximum number of characters of a text that `Unparsed.found` quotes."""


class UnparsedReason(StrEnum):
    """Reason why a part of a text could not be parsed."""

    MISSING = "missing"
    MALFORMED = "malformed"
    AMBIGUOUS = "ambiguous"
    OUT_OF_RANGE = "out-of-range"


@dataclass(frozen=True, slots=True)
class Unparsed:
    """Part of an answer that the text does not contain, or contains in an unreadable form."""

    reason: UnparsedReason
    found: str = ""
    """Text that was examined, truncated to a readable length; "" if there is none."""

    @classmethod
    def of(cls, reason: UnparsedReason, text: str) -> "Unparsed":
        """Build an unparsable part from its text, shortened to `READABLE` characters."""
        part = text.strip()
        return cls(reason, part if len(part) <= READABLE else part[: READABLE - 1] + "…")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceVerdict:
    """Verdict of protocol `trace`: the label, and the location, start time and explanation of a trace."""

    label: Label | Unparsed
    box: Box | Unparsed
    start_us: int | Unparsed
    explanation: str | Unparsed


@dataclass(frozen=True, slots=True, kw_only=True)
class RealismVerdict:
    """Verdict of protocol `realism`: a whole score from 1 to 5, and its reasons."""

    score: int | Unparsed
    problem: str | Unparsed
    adherence: str | Unparsed
    family: ErrorFamily | Literal["none"] | Unparsed | None = None
    """Kind of the errors, `none` if there are none; `None` if not requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RealityVerdict:
    """Verdict of protocol `reality`: the label, and the confidence if requested."""

    label: Label | Unparsed
    confidence: float | Unparsed | None = None
    """Stated probability that the label is right, 0 to 100; `None` if not requested."""

    @property
    def p_generated(self) -> float | None:
        """Return the stated probability that the clip is generated, 0 to 1; `None` if not stated."""
        if isinstance(self.label, Unparsed) or not isinstance(self.confidence, float):
            return None
        sure = self.confidence if self.label is Label.GENERATED else 100 - self.confidence
        return round(sure / 100, 9)  # so that `real`, 85.37 and `generated`, 14.63 are a tie


class Position(StrEnum):
    """Position of a clip in a pair."""

    FIRST = "first"
    SECOND = "second"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceVerdict:
    """Verdict of protocol `preference`: which clip of a pair is real."""

    real: Position | Unparsed


@dataclass(frozen=True, slots=True)
class LocatedSegment:
    """One generated segment of an answer: a trace, and the confidence if stated."""

    trace: Trace
    confidence: float | None = None
    """Confidence from 0 to 1; `None` if not stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocateVerdict:
    """Verdict of protocol `locate`: the generated segments in the order of the answer; empty for a clean clip."""

    segments: tuple[LocatedSegment, ...] | Unparsed

    @property
    def label(self) -> Label | Unparsed:
        """Return `generated` if there is a segment, `real` if there is none."""
        if isinstance(self.segments, Unparsed):
            return self.segments
        return Label.GENERATED if self.segments else Label.REAL


Verdict = TraceVerdict | RealismVerdict | RealityVerdict | PreferenceVerdict | LocateVerdict


FAR_OFF = 2
"""Distance from the human realism score, in points, from which an answer is wrong."""


def get_verdict_decision(outcome: Any) -> Any:
    """Return the label, score or position in a verdict; `None` for a failure or an unreadable one."""
    if isinstance(outcome, Failure):
        return None
    for part in ("label", "score", "real"):
        value = getattr(outcome, part, None)
        if isinstance(value, str | int):
            return value
    return None


def is_answer_correct(outcome: Any, truth: Any, label: Label) -> bool | None:
    """Return whether an answer is correct; `None` for a failure or an unreadable answer.

    `truth` is the first ground truth of the question, `label` that of the clip or of a pair's
    first clip.
    """
    decision = get_verdict_decision(outcome)
    if decision is None:
        return None
    if isinstance(outcome, RealismVerdict):
        return bool(abs(int(decision) - truth.score) < FAR_OFF)
    return bool(decision == (truth if isinstance(outcome, PreferenceVerdict) else label))
