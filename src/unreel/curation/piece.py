"""Clip during a curation: its declared metadata, the file that it is cut from, and the cut."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final

from unreel.benchmarks.entry import Entry
from unreel.core.clip import Clip, ClipId
from unreel.core.failure import Failure
from unreel.core.identity import digest
from unreel.core.span import to_us
from unreel.curation.measures import MeasuredShot
from unreel.curation.step import Found, StepSubject, as_plain, to_json
from unreel.media.fingerprint import ClipFingerprint
from unreel.media.render import WHOLE, FrameRange

QUARANTINE: Final = "quarantine.jsonl"
REJECTED: Final = "rejected"
NO_LICENCE: Final = "no-licence"
GIVE_LICENCE: Final = (
    "Give source.licence or a column `licence`, or let such clips in with require_licence = false at "
    "the top of the recipe"
)
CONTRADICTION: Final = "contradiction"


def stored_name(sha256: ClipId, suffix: str) -> str:
    """Return the path of stored media in their folder: by hash."""
    return f"{sha256[:2]}/{sha256}{suffix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeFile:
    """File to publish: hash, location and size."""

    sha256: str
    location: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipSegment:
    """One clip of the benchmark to be: a file, or the part of it that `cut` names."""

    entry: Entry
    clip: Clip
    """The whole file."""
    source: ClipId
    """The ingested file that it comes from: its unique source video."""
    cut: FrameRange = WHOLE
    start_s: Fraction = Fraction(0)
    """When the piece begins, from the file's first frame."""
    length_s: Fraction
    """How long the piece lasts."""
    cleaned: Clip | None = None
    """A copy without its watermarks."""
    first_frame: MadeFile | None = None
    family: str = ""
    """Near-duplicates share one; "" where it has none."""
    shots: tuple[MeasuredShot, ...] = ()
    """What the scan measured of its shots, for the steps that decide by it."""
    fingerprint: ClipFingerprint | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What steps found out about it, by step, in the values that JSON has: they go into the manifest."""

    @property
    def id(self) -> str:
        """Return the id of the segment; segments with the same bytes and the same cut have the same id."""
        return digest("piece", self.clip.id, to_json(as_plain(self.cut)))

    def subject(self, **given: Any) -> StepSubject:
        """Return the request of a step for the segment's file."""
        clip = self.clip
        return StepSubject(clip=clip.id, name=self.entry.name, location=clip.location, given=given)

    def left_out(self, step: str, reason: str, detail: str) -> "ExcludedSegment":
        """Return the segment as an exclusion by `step`."""
        middle = to_us(self.start_s + self.length_s / 2)
        return ExcludedSegment(self.entry.name, step, reason, detail, self.clip.location, middle)

    def remade(self, clip: Clip) -> "ClipSegment":
        """Return the segment as the separate file `clip`, without shots and fingerprint."""
        length_s = clip.facts.video.duration_s
        whole = replace(self, clip=clip, cut=WHOLE, start_s=Fraction(0), length_s=length_s)
        return replace(whole, shots=(), fingerprint=None)


@dataclass(frozen=True, slots=True, order=True)
class ExcludedSegment:
    """A file or clip that does not come into the benchmark, by which step and why."""

    name: str
    step: str
    reason: str
    detail: str
    location: str = ""
    """Path of its file; "" if unknown."""
    at_us: int | None = None
    """Midpoint of the segment in its file; None if the file was not opened."""


def apply_filter(
    step: str,
    pieces: Iterable[ClipSegment],
    found: Iterable[Found | Failure | None],
    keep: Callable[[ClipSegment, Found], ClipSegment | ExcludedSegment],
) -> Iterator[ClipSegment | ExcludedSegment]:
    """Yield `keep`'s result for each segment with the finding of `step`; a segment without a finding is kept."""
    for piece, own in zip(pieces, found, strict=True):
        match own:
            case None:
                yield piece
            case Failure():
                yield piece.left_out(step, own.reason.value, own.detail)
            case _:
                yield keep(piece, own)
