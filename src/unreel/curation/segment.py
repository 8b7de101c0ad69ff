"""Segments, which are the clips during a curation, and the records of excluded segments."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Annotated, Any

from pydantic import PlainSerializer

from unreel.benchmarks.entry import Entry
from unreel.core.clip import Clip, ClipId
from unreel.core.content_ids import digest
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.core.span import convert_to_microseconds
from unreel.curation.step_execution import (
    CurationStepRequest,
    Found,
    format_canonical_json,
    to_json_values,
)
from unreel.curation.working_table import SortedRunWriter, merge_sorted_runs
from unreel.media.fingerprint import BorderWidths, ClipFingerprint
from unreel.media.messages import format_fraction
from unreel.media.render import WHOLE, CroppedFrameRange

ExactSeconds = Annotated[Fraction, PlainSerializer(format_fraction)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredShot:
    """Shot of a file, a range of frames without a cut, with its borders and the screens' measurements."""

    first_frame: int
    end_frame: int
    start_s: ExactSeconds
    """Start of the shot, relative to the file's first frame."""
    length_s: ExactSeconds
    borders: BorderWidths
    motion: float
    sharpness: float
    noise: float
    lightness: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedFile:
    """Result of scanning a file: its measured shots, which together cover the whole file."""

    shots: tuple[MeasuredShot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedFileWithFingerprint(ScannedFile):
    """Result of scanning a file: its measured shots, and the fingerprint of the whole file."""

    fingerprint: ClipFingerprint


QUARANTINE = "quarantine.jsonl"
REJECTED = "rejected"
NO_LICENCE = "no-licence"
GIVE_LICENCE = (
    "Give source.licence or a column `licence`, or allow such clips with require_licence = false at "
    "the top of the recipe"
)
CONTRADICTION = "contradiction"


def build_hashed_path(sha256: ClipId, suffix: str) -> str:
    """Return the relative path of a media file that is stored by its hash, such as `ab/ab12.mp4`."""
    return f"{sha256[:2]}/{sha256}{suffix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileToPublish:
    """File that a benchmark publishes, a clip or a picture: hash, location and size."""

    sha256: str
    location: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipSegment:
    """Clip during a curation: a whole file, or the frame range and crop `cut` of a file."""

    entry: Entry
    clip: Clip
    """Complete file of the segment."""
    source: ClipId
    """Identifier of the ingested file, which is the unique source video."""
    cut: CroppedFrameRange = WHOLE
    start_s: Fraction = Fraction(0)
    """Start of the segment, relative to the file's first frame."""
    length_s: Fraction
    cleaned: Clip | None = None
    """Copy of the clip without its watermarks."""
    first_frame: FileToPublish | None = None
    family: str = ""
    """Identifier of the family of near-duplicates; "" if there are none."""
    shots: tuple[MeasuredShot, ...] = ()
    """Shots with the measurements of the scan, which later steps use."""
    fingerprint: ClipFingerprint | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Results of steps as JSON values, by step; they are written to the manifest."""

    @property
    def id(self) -> str:
        """Return the id of the segment, a hash of its file's content and its cut."""
        return digest("piece", self.clip.id, format_canonical_json(to_json_values(self.cut)))

    def subject(self, **inputs: Any) -> CurationStepRequest:
        clip = self.clip
        return CurationStepRequest(
            clip=clip.id, name=self.entry.name, location=clip.location, given=inputs
        )

    def left_out(self, step: str, reason: str, detail: str) -> "ExcludedSegment":
        middle = convert_to_microseconds(self.start_s + self.length_s / 2)
        return ExcludedSegment(self.entry.name, step, reason, detail, self.clip.location, middle)

    def remade(self, clip: Clip) -> "ClipSegment":
        """Return the segment with the whole file `clip` as content, without measured shots and fingerprint."""
        length_s = clip.facts.video.duration_s
        segment = replace(self, clip=clip, cut=WHOLE, start_s=Fraction(0), length_s=length_s)
        return replace(segment, shots=(), fingerprint=None)


@dataclass(frozen=True, slots=True, order=True)
class ExcludedSegment:
    """Record of a file or clip that a step excluded from the benchmark, with the reason."""

    name: str
    step: str
    reason: str
    detail: str
    location: str = ""
    """Path or URL of the file; "" if unknown."""
    at_us: int | None = None
    """Midpoint of the segment in its file; `None` if the file was not opened."""


def filter_segments(
    step: str,
    segments: Iterable[ClipSegment],
    results: Iterable[Found | Failure | None],
    keep: Callable[[ClipSegment, Found], ClipSegment | ExcludedSegment],
) -> Iterator[ClipSegment | ExcludedSegment]:
    """Yield `keep` of each segment and result; keep it without a result, exclude it with a failure."""
    for segment, result in zip(segments, results, strict=True):
        match result:
            case None:
                yield segment
            case Failure():
                yield segment.left_out(step, result.reason.value, result.detail)
            case _:
                yield keep(segment, result)


_NOWHERE = -1
"""Placeholder for a missing timestamp."""


@dataclass(frozen=True, slots=True)
class SegmentExclusions:
    """Exclusions of several steps: counts by step and reason, and the files that list the segments."""

    counts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    files: tuple[str, ...] = ()

    def __len__(self) -> int:
        return sum(self.counts.values())

    def __add__(self, other_exclusions: "SegmentExclusions") -> "SegmentExclusions":
        counts = Counter(self.counts)
        counts.update(other_exclusions.counts)
        return SegmentExclusions(dict(counts), (*self.files, *other_exclusions.files))

    @property
    def by_reason(self) -> Counter[str]:
        """Return the number of excluded segments by reason, over all steps."""
        tally: Counter[str] = Counter()
        for (_, reason), n in self.counts.items():
            tally[reason] += n
        return tally

    def read(self, directory: OutputDirectory) -> Iterator[ExcludedSegment]:
        """Read the files that list the excluded segments, and yield the segments sorted by name."""
        for name, step, reason, detail, location, at_us in merge_sorted_runs(directory, self.files):
            instant = None if at_us == _NOWHERE else at_us
            yield ExcludedSegment(name, step, reason, detail, location, instant)


NONE_LEFT_OUT = SegmentExclusions()


class ExcludedSegmentWriter:
    """Writer of the list of segments that one step excludes."""

    def __init__(self, directory: OutputDirectory, step: str) -> None:
        self._runs = SortedRunWriter(directory, f"{step}.out")
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, excluded: ExcludedSegment) -> None:
        self._counts[excluded.step, excluded.reason] += 1
        at_us = _NOWHERE if excluded.at_us is None else excluded.at_us
        self._runs.add(
            (
                excluded.name,
                excluded.step,
                excluded.reason,
                excluded.detail,
                excluded.location,
                at_us,
            )
        )

    def end(self) -> SegmentExclusions:
        """Write the remaining excluded segments, and return the counts and the files that list them."""
        return SegmentExclusions(dict(self._counts), self._runs.end())
