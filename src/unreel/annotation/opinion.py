"""Opinion of one annotator on one task: the input of agreement, consensus and quality metrics."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, assert_never

from unreel.annotation.campaign import AnnotationTask
from unreel.annotation.judgements import (
    AnyValue,
    PassFailAnswer,
    PreferenceAnswer,
    RatingAnswer,
    ScreeningAnswer,
    TraceAnswer,
    VoteAnswer,
)
from unreel.core.errors import InvalidValueError

CANNOT_TELL = "cannot-tell"
DISCARD = "discard"


class AnnotatorOpinion(Protocol):
    """Protocol of one annotator's answer to one task; judgements from a ledger implement it."""

    @property
    def annotator(self) -> str:
        """Return the name of the annotator who answered."""
        ...

    @property
    def task(self) -> AnnotationTask: ...

    @property
    def value(self) -> AnyValue:
        """Return the annotator's answer to the task."""
        ...

    @property
    def submitted_us(self) -> int:
        """Return the time at which the answer was submitted, in microseconds since 1970."""
        ...


AnyOpinion = TypeVar("AnyOpinion", bound=AnnotatorOpinion)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnstoredOpinion:
    """Opinion that is not stored in a ledger: simulated, read from a file, or made for a test."""

    annotator: str
    task: AnnotationTask
    value: AnyValue
    submitted_us: int = 0


def get_categorical_answer(value: AnyValue) -> str:
    """Return the part of an answer that is compared, as one word: label, score, position or decision."""
    match value:
        case ScreeningAnswer():
            return "keep" if value.keep else "remove"
        case TraceAnswer() | VoteAnswer():
            return value.label.value if value.label else CANNOT_TELL
        case RatingAnswer():
            return str(value.rating.score) if value.rating else DISCARD
        case PreferenceAnswer():
            return value.better.value
        case PassFailAnswer():
            return "pass" if value.passed else "fail"
        case _:
            assert_never(value)


def group_opinions_by_task(opinions: Iterable[AnyOpinion]) -> Mapping[str, Sequence[AnyOpinion]]:
    """Group opinions by task id and annotator, sorted; raise `InvalidValueError` for a second opinion."""
    grouped: dict[str, dict[str, AnyOpinion]] = defaultdict(dict)
    for opinion in opinions:
        id_ = opinion.task.id
        if opinion.annotator in grouped[id_]:
            raise InvalidValueError(
                f"{opinion.annotator} judged the task {id_} twice. Give the newest judgement of each "
                "annotator, as read_campaign does"
            )
        grouped[id_][opinion.annotator] = opinion
    return {
        id_: tuple(opinion for _, opinion in sorted(grouped[id_].items(), key=lambda item: item[0]))
        for id_ in sorted(grouped)
    }
