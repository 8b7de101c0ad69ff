"""One look at a clip in the confined reader: all that the checks of an entry want to know of it."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from unreel.core.facts import ClipFacts
from unreel.core.failure import Failure
from unreel.core.identity import clip_id
from unreel.curation.audit.frame import frame_features
from unreel.curation.watermark.clip import find_clip_watermarks
from unreel.curation.watermark.mark import WatermarkSearch
from unreel.media.borders import find_borders
from unreel.media.fingerprint import ClipFingerprint, fingerprint
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
    """Measured properties of a clip."""

    subject: InspectedClip
    facts: ClipFacts
    own: ClipFingerprint
    marks: WatermarkSearch | Failure
    frame: Features | Failure
    sha256: str


def look_at(
    subjects: Iterable[InspectedClip], reader: MediaReader, *, at_once: int = 2
) -> list[ClipInspection | Failure]:
    """Inspect clips in parallel; return the results in input order.

    A clip that cannot be decoded completely gives a failure.
    """
    with ThreadPoolExecutor(at_once, "look") as pool:
        return list(pool.map(lambda subject: _inspect_clip(subject, reader), subjects))


def print_of(file: Path, reader: MediaReader) -> ClipFingerprint | Failure:
    """Return the fingerprint of a clip from all of its frames."""
    scan = reader.scan(file)
    return scan if isinstance(scan, Failure) else fingerprint(scan, find_borders(scan.picked))


def _inspect_clip(subject: InspectedClip, reader: MediaReader) -> ClipInspection | Failure:
    facts = reader.probe(subject.file)
    if isinstance(facts, Failure):
        return facts
    own = print_of(subject.file, reader)
    if isinstance(own, Failure):
        return own
    middle = reader.frames(subject.file, sampling="uniform-1", encoding="rgb24")
    return ClipInspection(
        subject=subject,
        facts=facts,
        own=own,
        marks=find_clip_watermarks(subject.file, reader=reader),
        frame=middle if isinstance(middle, Failure) else frame_features(middle.frames[0].rgb()),
        sha256=clip_id(subject.file),
    )
