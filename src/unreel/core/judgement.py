"""Human judgements of clips: ratings, votes and preferences."""

from dataclasses import dataclass
from enum import StrEnum

from unreel.core.clip import ClipId
from unreel.core.errors import InvalidValueError


class Label(StrEnum):
    """Label of a clip: real or generated."""

    REAL = "real"
    GENERATED = "generated"


class ErrorFamily(StrEnum):
    """VideoRealBench's three kinds of error, which exclude each other."""

    HUMAN_STATES = "human-states"
    OBJECT_STATES = "object-states"
    INTERACTIONS = "human-object-interactions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """A person's realism score, 1 (bad) to 5 (excellent), with its reasons."""

    score: int
    problem: str = ""
    """Unrealistic content of the clip."""
    adherence: str = ""
    """Reason why that content deserves this score, in the words of the rubric."""
    family: ErrorFamily | None = None
    """Kind of the clip's errors; `None` if it has none or the kind is unknown."""

    def __post_init__(self) -> None:
        if not 1 <= self.score <= 5:  # noqa: PLR2004  the scale of the instrument
            raise InvalidValueError(
                f"a rating must be a whole number from 1 to 5, not {self.score}. Check the column mapping"
            )


@dataclass(frozen=True, slots=True)
class Vote:
    """One person's answer, real or generated, about one clip."""

    voter: str
    label: Label


@dataclass(frozen=True, slots=True)
class Pair:
    """Two clips, in presentation order."""

    first: ClipId
    second: ClipId

    def __post_init__(self) -> None:
        if self.first == self.second:
            raise InvalidValueError(
                f"a pair must have two different clips, not {self.first} twice. Drop the duplicate"
            )


def build_question_subject(first: ClipId, *second: ClipId) -> ClipId | Pair:
    """Return the subject of a question: the clip, or the pair if there is a second clip."""
    return Pair(first, *second) if second else first


def list_subject_clips(subject: ClipId | Pair) -> tuple[ClipId, ...]:
    """Return the one or two clips of a question's subject, in presentation order."""
    return (subject.first, subject.second) if isinstance(subject, Pair) else (subject,)
