"""Inspection of an entry's clips in the confined reader: copies of other clips, and file properties that leak."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from unreel.arena.season.benchmark import open_season_clip_set, read_clip_controls
from unreel.arena.season.folder import SeasonFolder
from unreel.arena.submission.entry import EntryFinding, FindingSeverity
from unreel.benchmarks.entry import Entry
from unreel.core.clip import ClipFacts, get_creator
from unreel.core.failure import Failure
from unreel.core.identity import compute_clip_id
from unreel.curation.audit.audit import LabelLeakAudit, audit
from unreel.curation.audit.audit import LabelLeakFinding as Audited
from unreel.curation.audit.features import AuditFeatureSet, ClipAuditData
from unreel.curation.audit.frame import compute_frame_features
from unreel.curation.watermark.clip import find_clip_watermarks
from unreel.curation.watermark.mark import WatermarkSearchResult
from unreel.engine.storage_access import StorageAccess, open_local_copy
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
class InspectedClip:
    """A clip to look at, and the scene that it shows."""

    name: str
    scene: str
    file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipInspection:
    """Properties, fingerprint, watermarks, frame features and hash of one inspected clip."""

    subject: InspectedClip
    facts: ClipFacts
    own: ClipFingerprint
    marks: WatermarkSearchResult | Failure
    frame: Features | Failure
    sha256: str


def inspect_clips(
    subjects: Iterable[InspectedClip], reader: MediaReader, *, at_once: int = 2
) -> list[ClipInspection | Failure]:
    """Inspect clips in parallel; return the results in input order.

    A clip that cannot be decoded completely gives a failure.
    """
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


def _inspect_clip(subject: InspectedClip, reader: MediaReader) -> ClipInspection | Failure:
    facts = reader.probe(subject.file)
    if isinstance(facts, Failure):
        return facts
    own = fingerprint_clip(subject.file, reader)
    if isinstance(own, Failure):
        return own
    middle = reader.frames(subject.file, sampling="uniform-1", encoding="rgb24")
    return ClipInspection(
        subject=subject,
        facts=facts,
        own=own,
        marks=find_clip_watermarks(subject.file, reader=reader),
        frame=middle
        if isinstance(middle, Failure)
        else compute_frame_features(middle.frames[0].rgb()),
        sha256=compute_clip_id(subject.file),
    )


COPY_BITS: Final = 16
"""Of 256, from the median frame to that of another clip: a copy, however it was encoded."""
NEAR_BITS: Final = MOST_BITS
"""Maximum distance of possible copies. Clips generated from the first frame of a real one had 40 or
more.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FingerprintedClip:
    """Fingerprint and owner of a clip; the owner of a real clip is ""."""

    clip: str
    owner: str
    own: ClipFingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class NearCopy:
    """Two clips of different owners with nearly the same content."""

    clip: str
    owner: str
    of: str
    of_owner: str
    """"" where it is the real one."""
    bits: float

    @property
    def is_copy(self) -> bool:
        """Return whether the two clips are too similar to be independent."""
        return self.bits <= COPY_BITS


def find_near_copies(clips: Sequence[FingerprintedClip]) -> tuple[NearCopy, ...]:
    """Find pairs of near-identical clips of different owners, nearest first.

    A real clip is always in the field `of`.
    """
    known = {each.clip: each for each in clips}
    found = []
    prints = InMemoryFingerprints([(each.clip, each.own) for each in clips])
    for match in find_near_duplicates(prints, every=True):
        one, other = known[match.first], known[match.second]
        if one.owner == other.owner:
            continue
        if not one.owner:
            one, other = other, one
        found.append(
            NearCopy(
                clip=one.clip, owner=one.owner, of=other.clip, of_owner=other.owner, bits=match.bits
            )
        )
    return tuple(sorted(found, key=lambda each: (each.bits, each.clip, each.of)))


def find_copies_of_real_clips(copies: Iterable[NearCopy], owner: str) -> dict[str, NearCopy]:
    """Return the clips of `owner` that are near-copies of a real clip, each with its nearest match."""
    nearest: dict[str, NearCopy] = {}
    for each in copies:
        if each.owner == owner and not each.of_owner:
            nearest.setdefault(each.clip, each)
    return nearest


def find_season_copies(folder: SeasonFolder, access: StorageAccess) -> tuple[NearCopy, ...]:
    """Find clips of the season that are near-copies of a real clip or of another creator's clip.

    Controls are excluded, because they are changed copies of real clips.
    """
    benchmark, controls = open_season_clip_set(folder), read_clip_controls(folder)
    printed = []
    with open_media_reader(access.settings, trusted=access.trusted) as reader:
        for entry in benchmark:
            if not isinstance(entry, Entry) or entry.name in controls:
                continue
            with open_local_copy(benchmark.find(entry), access) as file:
                own = fingerprint_clip(file, reader)
            if not isinstance(own, Failure):
                printed.append(
                    FingerprintedClip(clip=entry.name, owner=get_creator(entry.origin), own=own)
                )
    return find_near_copies(printed)


LEAST_CLIPS: Final = 6
"""Of both sides: with fewer, a property that only one side has may be chance."""
_REAL: Final = "real "
_ENTRY: Final = "entry "


def find_label_leaks(
    entered: Sequence[ClipInspection], real: Sequence[ClipInspection], *, seed: int
) -> Iterator[EntryFinding]:
    """Yield warnings about properties that distinguish an entry's clips from real clips.

    The warnings are visible watermarks, properties that all clips of the entry and no real clip
    have, and findings of the audit.
    """
    yield from _iter_watermark_findings(entered)
    if min(len(entered), len(real)) >= LEAST_CLIPS:
        yield from _iter_property_findings(entered, real)
        judged = audit(
            [*_iter_observations(entered, "entry"), *_iter_observations(real, None)], seed=seed
        )
        yield from _iter_audit_findings(judged)


def _iter_watermark_findings(entered: Sequence[ClipInspection]) -> Iterator[EntryFinding]:
    for look in entered:
        if not isinstance(look.marks, Failure) and (look.marks.found or look.marks.roaming):
            words = (
                "a mark is seen on the picture, by which its maker is known. Hand in clips without"
            )
            name = look.subject.name
            yield EntryFinding(
                check="watermark", weight=FindingSeverity.WARNS, words=words, clips=(name,)
            )


def _iter_property_findings(
    entered: Sequence[ClipInspection], real: Sequence[ClipInspection]
) -> Iterator[EntryFinding]:
    ours = [_format_file_properties(look.facts) for look in entered]
    theirs = [_format_file_properties(look.facts) for look in real]
    for key, value in ours[0].items():
        if all(own[key] == value for own in ours) and all(own[key] != value for own in theirs):
            words = f"{key} is {value!a} in every clip, and in no real one: file properties reveal the label"
            yield EntryFinding(check="audit", weight=FindingSeverity.WARNS, words=words)


def _format_file_properties(facts: ClipFacts) -> Mapping[str, str]:
    video = facts.video
    return {
        "the container": facts.container,
        "the codec": video.codec,
        "the pixel format": video.pixel_format,
        "the frame rate": str(video.average_rate),
        "the frame size": f"{video.width} x {video.height}",
        "the sound": ", ".join(f"{a.codec} {a.sample_rate_hz}" for a in facts.audio) or "none",
        "what the file says of itself": ", ".join(
            f"{t.name} {t.value}".strip() for t in facts.tags
        ),
    }


def _iter_observations(
    looks: Sequence[ClipInspection], creator: str | None
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


def _iter_audit_findings(judged: LabelLeakAudit) -> Iterator[EntryFinding]:
    for view in judged.views:
        if view.view is AuditFeatureSet.FRAME or view.finding is not Audited.LEAKS:
            continue
        tells = ", ".join(leak.feature for leak in view.leaks[:3])
        words = f"a model that sees only the {view.view.value} separates it from real clips ({view.auc}), by {tells}"
        yield EntryFinding(check="audit", weight=FindingSeverity.WARNS, words=words)
