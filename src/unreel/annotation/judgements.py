"""Annotators' answers by interface, reasons for quarantine, pulled annotations and decisions."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Discriminator, TypeAdapter

from unreel.core.content_ids import digest
from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Label, Rating
from unreel.core.trace import Trace
from unreel.core.verdict import Position

EXCLUSION = "exclusion"
"""Kind of a notice after which an annotator's judgements no longer count."""
INCLUSION = "inclusion"
"""Kind of a notice after which an annotator's judgements count again."""
REVIEW = "review"
"""Kind of a notice with a review of a task's consensus."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerNotice:
    """Decision of a person in the ledger, for example an exclusion; a later decision is a new notice."""

    seq: int
    """Sequence number in order of arrival."""
    campaign: str
    kind: str
    subject: str
    """Name of the annotator or id of the task that the notice is about."""
    by: str
    said: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreeningAnswer:
    """Answer to `screening`: whether the clip belongs in the data set."""

    keep: bool
    kind: Literal["screened"] = "screened"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceAnswer:
    """Answer to `trace`: traces of a clip, and its label, which is generated if there are traces."""

    traces: tuple[Trace, ...]
    label: Label | None
    """Label of the clip; `None` if the annotator was undecided."""
    kind: Literal["traced"] = "traced"

    def __post_init__(self) -> None:
        if self.traces and self.label is not Label.GENERATED:
            raise InvalidValueError(
                "a clip with traces looks generated. Take the traces away, or say so"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingAnswer:
    """Answer to `realism`: a score with its reasons, or the decision to discard the clip."""

    rating: Rating | None
    """Score with its reasons; `None` for a clip that should be discarded."""
    kind: Literal["rated"] = "rated"

    @property
    def discard(self) -> bool:
        """Return whether the annotator discards the clip because its quality is too low."""
        return self.rating is None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceAnswer:
    """Answer to `preference`: which clip of the pair is more realistic."""

    better: Position
    """Position of the better clip in the task's names, regardless of the side on which it was shown."""
    kind: Literal["preferred"] = "preferred"


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteAnswer:
    """Answer to `reality`: real or generated."""

    label: Label
    kind: Literal["voted"] = "voted"


@dataclass(frozen=True, slots=True, kw_only=True)
class PassFailAnswer:
    """Answer to `pass-fail`: whether the clip passes the campaign's question."""

    passed: bool
    kind: Literal["passed"] = "passed"


AnyValue = (
    ScreeningAnswer | TraceAnswer | RatingAnswer | PreferenceAnswer | VoteAnswer | PassFailAnswer
)
Value = Annotated[AnyValue, Discriminator("kind")]
VALUES: TypeAdapter[Value] = TypeAdapter(Value)
"""Pydantic adapter that validates answers and converts them to JSON."""


class QuarantineReason(StrEnum):
    """Reason why a submission is no judgement. The values are stored: add, never rename."""

    MALFORMED = "malformed"
    MISSING = "missing"
    """Required question without an answer, or skipped task."""
    CONTRADICTORY = "contradictory"
    OUT_OF_RANGE = "out-of-range"
    UNKNOWN_WORD = "unknown-word"
    TOO_LARGE = "too-large"
    NOT_ASSIGNED = "not-assigned"
    """Task that was never assigned to the annotator, or that the campaign does not have."""
    NOT_THEIRS = "not-theirs"
    """Annotation by another account in the annotator's project."""
    TAMPERED = "tampered"
    """Answer to a screen or task that was changed since the last unchanged pull."""


@dataclass(frozen=True, slots=True)
class SubmissionQuarantine:
    """Reason and detail of a submission that is stored and counted, but is no valid judgement."""

    reason: QuarantineReason
    detail: str

    def __str__(self) -> str:
        return f"{self.reason.value}: {self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationRecord:
    """Annotation pulled from Label Studio: annotator, task, time, versions, and answer or quarantine."""

    campaign: str
    annotator: str
    task: str
    origin: str
    """Identifier of the annotation on its server; edits of the annotation keep it."""
    guidelines_version: str
    interface_version: str
    submitted_us: int
    """Time of the last save by the server's clock, in microseconds since 1970."""
    lead_us: int | None
    """Time spent on the task in microseconds; `None` if the server does not report it."""
    raw: str
    """Stored fields of the annotation as sent by the server, as JSON with sorted keys."""
    outcome: AnyValue | SubmissionQuarantine

    @property
    def key(self) -> str:
        """Return a hash of the annotation and its content; pulling the same content gives the same key."""
        return digest("record", self.campaign, self.origin, self.raw)
