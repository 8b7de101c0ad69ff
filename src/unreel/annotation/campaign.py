"""Types of an annotation campaign: settings, annotators, tasks, assignments, answers and records."""

import re
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Discriminator, TypeAdapter

from unreel.core.clip import ClipId
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError, InvalidValueError
from unreel.core.judgement import Label, Rating
from unreel.core.span import convert_to_microseconds
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
    """Reason why a submission does not count as a judgement. The values are stored: add, never rename."""

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
    """Reason and detail of a submission that is stored and counted, but invalid as a judgement."""

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


MAX_ANNOTATORS = 1000
_WORD = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


class AnnotationInterface(StrEnum):
    """Kind of question that annotators answer; each has its own screen."""

    SCREENING = "screening"
    TRACE = "trace"
    LOCATE = "locate"
    REALISM = "realism"
    PREFERENCE = "preference"
    REALITY = "reality"
    PASS_FAIL = "pass-fail"  # noqa: S105  no password

    @property
    def n_clips(self) -> int:
        """Return the number of clips that one task of this interface shows."""
        return 2 if self is AnnotationInterface.PREFERENCE else 1


class PrefillStudyArm(StrEnum):
    """Study arm of an assignment: whether the annotator sees earlier annotations of the clip."""

    PLAIN = "plain"
    """Assignment outside the study: the campaign or the task has no prefilled annotations."""
    PREFILLED = "prefilled"
    BLIND = "blind"
    """Control arm: prefilled annotations exist but are hidden, to measure the bias that they cause."""


@dataclass(frozen=True, slots=True)
class Annotator:
    """Person who judges clips; `name` appears in tables, and `email` is the login at Label Studio."""

    name: str
    email: str

    def __post_init__(self) -> None:
        require_safe_name("annotator", self.name)
        if "@" not in self.email or any(letter.isspace() for letter in self.email):
            raise InvalidSettingError(
                "annotator",
                f"{self.email!r} is not an address",
                "Write NAME=ADDRESS, or an address",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """Settings of an annotation campaign, which all its tasks share."""

    name: str
    interface: AnnotationInterface
    benchmark: str
    """Path or URL of the table of clips, for `open_benchmark`."""
    overlap: int = 3
    """Number of annotators per task."""
    seed: int = 0
    guidelines: str
    """Guidelines shown to the annotators."""
    interface_version: str
    """Version of the screen, derived from its label configuration; any change gives a new version."""

    def __post_init__(self) -> None:
        require_safe_name("campaign", self.name)
        if not 1 <= self.overlap <= MAX_ANNOTATORS:
            raise InvalidSettingError(
                "overlap",
                f"{self.overlap} people cannot judge a task",
                f"Give 1 to {MAX_ANNOTATORS}",
            )

    @property
    def guidelines_version(self) -> str:
        """Return a hash of the guidelines' text; any change of the text changes the version."""
        return digest("guidelines", self.guidelines)[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorClipCopy:
    """Copy of a clip that annotators see: constant frame rate, and the first frame at time 0."""

    clip: ClipId
    """Identifier of the original clip, whose time base the copy keeps."""
    location: str
    """File name of the copy in the campaign's storage of clip copies."""
    rate: Fraction
    n_frames: int
    width: int
    height: int

    def __post_init__(self) -> None:
        if self.rate <= 0 or self.n_frames < 1:
            raise InvalidValueError(
                f"copy must have frames and a frame rate above 0, got {self.n_frames} frames at {self.rate}"
            )

    @property
    def duration_us(self) -> int:
        """Return the duration of the clip copy in microseconds, to the end of the last frame."""
        return convert_to_microseconds(self.n_frames / self.rate)

    def at_us(self, frame: int) -> int:
        """Return the start time of a frame in microseconds; frames count from 0, `n_frames` gives the end."""
        return convert_to_microseconds(frame / self.rate)

    def frame_at(self, at_us: int) -> int:
        """Return the number of the frame that is visible at `at_us`; frames count from 0."""
        frame = int(Fraction(at_us, 1_000_000) * self.rate)
        # Times are rounded to microseconds, so the next frame may already be visible.
        return min(frame + (self.at_us(frame + 1) <= at_us), self.n_frames - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationTask:
    """One task for annotators: a clip or a pair of clips to judge."""

    names: tuple[str, ...]
    """Names of the benchmark entries: one, or two in alphabetical order for a pair."""
    copies: tuple[AnnotatorClipCopy, ...]
    """Browser copies of the clips, in the order of `names`."""
    group: str = ""
    """Identifier of the scene, shared by all tasks that show it; "" if unknown."""
    known: Value | None = None
    """Known answer of an injected trace or gold clip; `None` if unknown. It is never shown to annotators."""
    prefill: Value | None = None
    """Earlier annotations by a model or a person; shown only in the arm `prefilled`."""

    def __post_init__(self) -> None:
        if not 1 <= len(self.names) == len(self.copies) <= 2:  # noqa: PLR2004  a pair
            raise InvalidValueError(
                f"task must have one or two clips with a copy each, got {self.names}"
            )
        if list(self.names) != sorted(set(self.names)):
            raise InvalidValueError(
                f"clips of a pair must differ and be in alphabetical order, got {self.names}"
            )

    @property
    def id(self) -> str:
        """Return an id computed from the names and hashes of the task's clips; a repeated push keeps it."""
        return _compute_task_id(self.names, tuple(copy.clip for copy in self.copies))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAssignment:
    """Assignment of one task to one annotator."""

    annotator: str
    task: str
    batch: int
    """Number of the batch, from 1; the tasks of a batch are pushed together."""
    position: int
    """Position in the annotator's own order of the batch, from 0."""
    arm: PrefillStudyArm = PrefillStudyArm.PLAIN
    swapped: bool = False
    """Whether the second clip of the pair is shown on the left."""


@lru_cache(maxsize=1 << 17)
def _compute_task_id(names: tuple[str, ...], clips: tuple[ClipId, ...]) -> str:
    return digest("task", *names, *clips)[:24]


def require_safe_name(what: str, name: str) -> None:
    """Check that `name` is safe in URLs, file names and tables."""
    if not _WORD.fullmatch(name):
        raise InvalidSettingError(
            what,
            f"cannot use the name {name!a}",
            "Use lower-case letters, digits, '.', '_' and '-', 63 at most",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorJudgement:
    """Valid judgement of one annotator about one task."""

    annotator: str
    task: AnnotationTask
    value: AnyValue
    lead_us: int | None
    submitted_us: int
    arm: PrefillStudyArm
