"""Types of an annotation campaign: settings, annotators, clip copies, tasks and assignments."""

import re
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

from unreel.annotation.judgements import Value
from unreel.core.clip import ClipId
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError, InvalidValueError
from unreel.core.span import convert_to_microseconds

MOST_ANNOTATORS = 1000
_WORD = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


class AnnotationInterface(StrEnum):
    """Kind of question that annotators answer; each has its own screen."""

    SCREENING = "screening"
    TRACE = "trace"
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
                "annotator", f"{self.email!r} is no address", "Write NAME=ADDRESS, or an address"
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
        if not 1 <= self.overlap <= MOST_ANNOTATORS:
            raise InvalidSettingError(
                "overlap",
                f"{self.overlap} people cannot judge a task",
                f"Give 1 to {MOST_ANNOTATORS}",
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
    """Check that `name` is safe in URLs, file names and tables.

    Args:
        what: Setting that the error message names.
        name: Name to check.
    """
    if not _WORD.fullmatch(name):
        raise InvalidSettingError(
            what,
            f"cannot use the name {name!a}",
            "Use lower-case letters, digits, '.', '_' and '-', 63 at most",
        )
