"""What an answer's text says once it is read. What it does not say stays `Unparsed`."""

from dataclasses import dataclass
from enum import StrEnum

from unreel.core.box import Box
from unreel.core.judgement import Label


class UnparsedReason(StrEnum):
    """Why a part of a text could not be read."""

    MISSING = "missing"
    MALFORMED = "malformed"
    AMBIGUOUS = "ambiguous"
    OUT_OF_RANGE = "out-of-range"


@dataclass(frozen=True, slots=True)
class Unparsed:
    """A part that the text does not hold, or holds in a form that cannot be read."""

    reason: UnparsedReason
    found: str = ""
    """The piece of text that was looked at, cut to a readable length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceVerdict:
    """`trace`: real or generated, and where, when and why."""

    label: Label | Unparsed
    box: Box | Unparsed
    start_us: int | Unparsed
    explanation: str | Unparsed


@dataclass(frozen=True, slots=True, kw_only=True)
class RealismVerdict:
    """`realism`: a whole score from 1 to 5, and its reasons."""

    score: int | Unparsed
    problem: str | Unparsed
    adherence: str | Unparsed


@dataclass(frozen=True, slots=True, kw_only=True)
class RealityVerdict:
    """`reality`: real or generated."""

    label: Label | Unparsed


class Position(StrEnum):
    """A place in a pair."""

    FIRST = "first"
    SECOND = "second"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceVerdict:
    """`preference`: which clip of a pair is real."""

    real: Position | Unparsed


Verdict = TraceVerdict | RealismVerdict | RealityVerdict | PreferenceVerdict
