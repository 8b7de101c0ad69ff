"""Inspection of an entry's clips: copies of other clips, and properties that reveal the label.

Clips are decoded in the sandboxed media reader.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from unreel.arena.season.clip_set import open_season_clip_set, read_clip_controls
from unreel.arena.season.folder import SeasonFolder
from unreel.arena.submission.entry import EntryFinding, EntryFindingSeverity
from unreel.benchmarks.entry import Entry
from unreel.core.clip import ClipFacts, get_first_creator
from unreel.core.content_ids import compute_clip_id
from unreel.core.failure import Failure
from unreel.curation.audit.clip_features import AuditFeatureSet, ClipAuditData
from unreel.curation.audit.frame_features import compute_frame_features
from unreel.curation.audit.label_leaks import LabelLeakAudit, audit_label_leaks
from unreel.curation.audit.label_leaks import LabelLeakFinding as Audited
from unreel.curation.watermark.clip_watermarks import find_clip_watermarks
from unreel.curation.watermark.regions_and_ocr import WatermarkSearchResult
from unreel.engine.storage_access import ClipAccessSettings, provide_local_clip_file
from unreel.media.access import open_media_reader
from unreel.media.fingerprint import (
    ClipFingerprint,
    InMemoryFingerprints,
    compute_clip_fingerprint,
    find_frame_borders,
)
from unreel.media.near_duplicates import MOST_BITS, find_near_duplicates
from unreel.media.reader import MediaReader
from unreel.reviewers.baselines.fitting import Features


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipToInspect:
    """A clip that is to be inspected: its name, its scene and its file."""

    name: str
    scene: str
    file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipInspectionResult:
    """Result of inspecting a clip: properties, fingerprint, watermarks, frame features and hash."""

    subject: ClipToInspect
    facts: ClipFacts
    own: ClipFingerprint
    marks: WatermarkSearchResult | Failure
    frame: Features | Failure
    sha256: str


def inspect_clips(
    subjects: Iterable[ClipToInspect], reader: MediaReader, *, at_once: int = 2
) -> list[ClipInspectionResult | Failure]:
    """Inspect clips in parallel, in input order; an incompletely decodable clip gives a failure."""
    with ThreadPoolExecutor(at_once, "look") as pool:
        return list(pool.map(lambda subject: _inspect_clip(subject, reader), subjects))


def fingerprint_clip(file: Path, reader: MediaReader) -> ClipFingerprint | Failure:
    """Return the fingerprint of a clip from all of its frames."""
    scan = reader.scan(file)
    return (
        scan
        if isinstance(scan, Failure)
        else compute_clip_fingerprint(scan, find_frame_borders(scan.picked))
    )


def _inspect_clip(subject: ClipToInspect, reader: MediaReader) -> ClipInspectionResult | Failure:
    facts = reader.probe(subject.file)
    if isinstance(facts, Failure):
        return facts
    fingerprint = fingerprint_clip(subject.file, reader)
    if isinstance(fingerprint, Failure):
        return fingerprint
    middle = reader.frames(subject.file, sampling="uniform-1", encoding="rgb24")
    return ClipInspectionResult(
        subject=subject,
        facts=facts,
        own=fingerprint,
        marks=find_clip_watermarks(subject.file, reader=reader),
        frame=middle
        if isinstance(middle, Failure)
        else compute_frame_features(middle.frames[0].rgb()),
        sha256=compute_clip_id(subject.file),
    )


COPY_BITS: Final = 16
"""Maximum distance of a copy: median over frames of the differing bits, of 256, in any encoding."""
NEAR_BITS: Final = MOST_BITS
"""Maximum distance of a near-copy. Clips generated from the first frame of a real one had 40 or
more.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FingerprintedClip:
    """A clip with its fingerprint and its owner; the owner of a real clip is ""."""

    clip: str
    owner: str
    own: ClipFingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class NearCopyPair:
    """Two clips of different owners with nearly the same content."""

    clip: str
    owner: str
    of: str
    of_owner: str
    """Owner of the clip `of`; empty for a real clip."""
    bits: float

    @property
    def is_copy(self) -> bool:
        """Return whether two clips are so similar that one is a copy of the other."""
        return self.bits <= COPY_BITS


def find_near_copies(clips: Sequence[FingerprintedClip]) -> tuple[NearCopyPair, ...]:
    """Find near-copies of different owners, nearest first; a real clip is in the field `of`."""
    known = {item.clip: item for item in clips}
    pairs = []
    prints = InMemoryFingerprints([(item.clip, item.own) for item in clips])
    for match in find_near_duplicates(prints, all_pairs=True):
        a, b = known[match.first], known[match.second]
        if a.owner == b.owner:
            continue
        if not a.owner:
            a, b = b, a
        pairs.append(
            NearCopyPair(clip=a.clip, owner=a.owner, of=b.clip, of_owner=b.owner, bits=match.bits)
        )
    return tuple(sorted(pairs, key=lambda item: (item.bits, item.clip, item.of)))


def find_copies_of_real_clips(
    copies: Iterable[NearCopyPair], owner: str
) -> dict[str, NearCopyPair]:
    """Return the clips of `owner` that are near-copies of real clips, each with the nearest one."""
    nearest: dict[str, NearCopyPair] = {}
    for pair in copies:
        if pair.owner == owner and not pair.of_owner:
            nearest.setdefault(pair.clip, pair)
    return nearest


def find_copied_season_clips(
    folder: SeasonFolder, access: ClipAccessSettings
) -> tuple[NearCopyPair, ...]:
    """Find near-copies of a real or another creator's clip, except controls, copies by design."""
    benchmark, controls = open_season_clip_set(folder), read_clip_controls(folder)
    printed = []
    with open_media_reader(access.settings, trusted=access.trusted) as reader:
        for entry in benchmark:
            if not isinstance(entry, Entry) or entry.name in controls:
                continue
            with provide_local_clip_file(benchmark.find(entry), access) as file:
                fingerprint = fingerprint_clip(file, reader)
            if not isinstance(fingerprint, Failure):
                printed.append(
                    FingerprintedClip(
                        clip=entry.name, owner=get_first_creator(entry.origin), own=fingerprint
                    )
                )
    return find_near_copies(printed)


LEAST_CLIPS: Final = 6
"""Minimum number of entered and of real clips; with fewer, a property of one side may be chance."""
_REAL: Final = "real "
_ENTRY: Final = "entry "


def iter_label_leak_findings(
    entered: Sequence[ClipInspectionResult], real: Sequence[ClipInspectionResult], *, seed: int
) -> Iterator[EntryFinding]:
    """Yield warnings about properties that distinguish an entry's clips from real clips.

    The warnings are visible watermarks, properties that all clips of the entry and no real clip
    have, and findings of the audit.
    """
    yield from _iter_watermark_findings(entered)
    if min(len(entered), len(real)) >= LEAST_CLIPS:
        yield from _iter_property_findings(entered, real)
        audit = audit_label_leaks(
            [*_iter_clip_audit_data(entered, "entry"), *_iter_clip_audit_data(real, None)],
            seed=seed,
        )
        yield from _iter_audit_findings(audit)


def _iter_watermark_findings(entered: Sequence[ClipInspectionResult]) -> Iterator[EntryFinding]:
    for look in entered:
        if not isinstance(look.marks, Failure) and (look.marks.found or look.marks.roaming):
            problem = (
                "the picture has a mark that identifies its creator. Submit clips without marks"
            )
            name = look.subject.name
            yield EntryFinding(
                check="watermark", weight=EntryFindingSeverity.WARNS, words=problem, clips=(name,)
            )


def _iter_property_findings(
    entered: Sequence[ClipInspectionResult], real: Sequence[ClipInspectionResult]
) -> Iterator[EntryFinding]:
    rows = [_format_file_properties(look.facts) for look in entered]
    others = [_format_file_properties(look.facts) for look in real]
    for key, value in rows[0].items():
        if all(row[key] == value for row in rows) and all(row[key] != value for row in others):
            problem = f"{key} is {value!a} in every clip, and in no real one: file properties reveal the label"
            yield EntryFinding(check="audit", weight=EntryFindingSeverity.WARNS, words=problem)


def _format_file_properties(facts: ClipFacts) -> Mapping[str, str]:
    video = facts.video
    return {
        "the container": facts.container,
        "the codec": video.codec,
        "the pixel format": video.pixel_format,
        "the frame rate": str(video.average_rate),
        "the frame size": f"{video.width} x {video.height}",
        "the sound": ", ".join(f"{a.codec} {a.sample_rate_hz}" for a in facts.audio) or "none",
        "the set of metadata tags": ", ".join(f"{t.name} {t.value}".strip() for t in facts.tags),
    }


def _iter_clip_audit_data(
    looks: Sequence[ClipInspectionResult], creator: str | None
) -> Iterator[ClipAuditData]:
    kind = _REAL if creator is None else _ENTRY
    for look in looks:
        yield ClipAuditData(
            clip=kind + look.subject.name,
            creator=creator,
            group=look.subject.scene,
            facts=look.facts,
            frame=look.frame,
            watermarks=look.marks,
        )


def _iter_audit_findings(audit: LabelLeakAudit) -> Iterator[EntryFinding]:
    for view in audit.views:
        if view.view is AuditFeatureSet.FRAME or view.finding is not Audited.LEAKS:
            continue
        tells = ", ".join(leak.feature for leak in view.leaks[:3])
        problem = f"a model that sees only the {view.view.value} separates it from real clips ({view.auc}), by {tells}"
        yield EntryFinding(check="audit", weight=EntryFindingSeverity.WARNS, words=problem)
