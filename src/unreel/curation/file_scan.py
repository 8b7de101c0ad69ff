"""Scan step: decodes each file once and measures its shots, borders and fingerprint."""

from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, Literal

from pydantic import TypeAdapter

from unreel.core.failure import Failure
from unreel.curation.clip_screens import build_scan_screen_input
from unreel.curation.segment import (
    ClipSegment,
    MeasuredShot,
    ScannedFile,
    ScannedFileWithFingerprint,
    filter_segments,
)
from unreel.curation.shots import (
    ShotFrameRange,
    TransNetCutDetector,
    find_colour_cuts,
    split_into_shots,
)
from unreel.curation.state import CurationJob, CurationState
from unreel.curation.step_execution import Given, VersionedCurationStep
from unreel.media.fingerprint import compute_clip_fingerprint, find_frame_borders
from unreel.media.reader import MediaReader
from unreel.media.scan import ClipScan

SCAN: Final = "scan"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShotDetectorSettings:
    """Method of shot detection, and its threshold (used by `colour` only)."""

    detector: Literal["colour", "transnetv2"]
    threshold: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FileScanSettings:
    """Settings of the scan step: how to detect shots, and whether to compute fingerprints."""

    cutter: ShotDetectorSettings | None
    """Settings of cut detection; `None` for no detection."""
    prints: bool
    """Whether to compute fingerprints."""


def run_scan_step(
    settings: FileScanSettings, work: CurationJob, state: CurationState
) -> CurationState:
    """Scan each file; add its shots and, if requested, its fingerprint to the segment, still a whole file."""
    step: VersionedCurationStep[ScannedFile] = VersionedCurationStep(
        name=SCAN,
        version=2,
        settings=asdict(settings),
        finds=TypeAdapter(ScannedFileWithFingerprint if settings.prints else ScannedFile),
    )
    look = partial(_scan_file, settings=settings)
    scanned = work.bench.ask(step, state.pieces.subjects(), look)
    return state.after(
        work.shelf.sift(SCAN, filter_segments(SCAN, state.pieces, scanned, _add_measurements))
    )


def _add_measurements(piece: ClipSegment, scanned: ScannedFile) -> ClipSegment:
    fingerprint = scanned.fingerprint if isinstance(scanned, ScannedFileWithFingerprint) else None
    return replace(piece, shots=scanned.shots, fingerprint=fingerprint)


def _scan_file(
    reader: MediaReader, file: Path, _given: Given, *, settings: FileScanSettings
) -> ScannedFile | Failure:
    scan = reader.scan(file)
    if isinstance(scan, Failure):
        return scan
    match settings.cutter:
        case None:
            cuts: tuple[int, ...] | Failure = ()
        case ShotDetectorSettings(detector="colour", threshold=threshold):
            cuts = find_colour_cuts(scan.histograms, threshold=threshold)
        case _:
            cuts = _load_transnet().read_cuts(reader, file)
    if isinstance(cuts, Failure):
        return cuts
    shots = tuple(_measure_shot(scan, shot) for shot in split_into_shots(scan, cuts))
    if not settings.prints:
        return ScannedFile(shots=shots)
    fingerprint = compute_clip_fingerprint(scan, find_frame_borders(scan.picked))
    return ScannedFileWithFingerprint(shots=shots, fingerprint=fingerprint)


@lru_cache(maxsize=1)
def _load_transnet() -> TransNetCutDetector:
    return TransNetCutDetector()


def _measure_shot(scan: ClipScan, shot: ShotFrameRange) -> MeasuredShot:
    part = _select_shot_scan(scan, shot)
    measured = build_scan_screen_input(part, clip="")
    return MeasuredShot(
        first_frame=shot.first_frame,
        end_frame=shot.first_frame + shot.n_frames,
        start_s=shot.start_s,
        length_s=shot.length_s,
        borders=find_frame_borders(part.picked),
        motion=measured.motion,
        sharpness=measured.sharpness,
        noise=measured.noise,
        lightness=measured.lightness,
    )


def _select_shot_scan(scan: ClipScan, shot: ShotFrameRange) -> ClipScan:
    """Return the part of a scan for one shot; a shot without picked frames gets those of the whole clip."""
    frames = slice(shot.first_frame, shot.first_frame + shot.n_frames)
    picked = tuple(frame for frame in scan.picked if frames.start <= frame.index < frames.stop)
    return replace(
        scan,
        instants_s=scan.instants_s[frames],
        end_s=shot.end_s,
        histograms=scan.histograms[frames],
        lightness=scan.lightness[frames],
        changes=scan.changes[frames],
        stirs=scan.stirs[frames],
        picked=picked or scan.picked,
    )
