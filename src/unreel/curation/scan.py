"""One pass over each file: its shots, their borders and measures, and the fingerprint of the whole."""

from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, Literal

from pydantic import TypeAdapter

from unreel.core.failure import Failure
from unreel.curation.measures import FingerprintedScan, MeasuredShot, ScannedFile
from unreel.curation.piece import ClipSegment, apply_filter
from unreel.curation.screen import measure
from unreel.curation.split.shots import FrameShot, find_cuts, split_shots
from unreel.curation.split.transnet import TransNet
from unreel.curation.state import CurationJob, CurationState
from unreel.curation.step import Given, StepName
from unreel.media.borders import find_borders
from unreel.media.fingerprint import fingerprint
from unreel.media.reader import MediaReader
from unreel.media.scan import ClipScan

SCAN: Final = "scan"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShotDetector:
    """Method of shot detection; the threshold is that of `colour`."""

    detector: Literal["colour", "transnetv2"]
    threshold: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanSettings:
    """Settings of the scan that later steps need."""

    cutter: ShotDetector | None
    """Without one no cuts are looked for."""
    prints: bool
    """Whether fingerprints are taken."""


def run_step(settings: ScanSettings, work: CurationJob, state: CurationState) -> CurationState:
    """Return every segment with its measurements and, if requested, its fingerprint.

    Each segment is still a whole file.
    """
    step: StepName[ScannedFile] = StepName(
        name=SCAN,
        version=2,
        settings=asdict(settings),
        finds=TypeAdapter(FingerprintedScan if settings.prints else ScannedFile),
    )
    look = partial(_scan_file, settings=settings)
    found = work.bench.ask(step, state.pieces.subjects(), look)
    return state.after(
        work.shelf.sift(SCAN, apply_filter(SCAN, state.pieces, found, _add_measurements))
    )


def _add_measurements(piece: ClipSegment, found: ScannedFile) -> ClipSegment:
    own = found.fingerprint if isinstance(found, FingerprintedScan) else None
    return replace(piece, shots=found.shots, fingerprint=own)


def _scan_file(
    reader: MediaReader, file: Path, _given: Given, *, settings: ScanSettings
) -> ScannedFile | Failure:
    scan = reader.scan(file)
    if isinstance(scan, Failure):
        return scan
    match settings.cutter:
        case None:
            cuts: tuple[int, ...] | Failure = ()
        case ShotDetector(detector="colour", threshold=threshold):
            cuts = find_cuts(scan.histograms, threshold=threshold)
        case _:
            cuts = _load_transnet().read_cuts(reader, file)
    if isinstance(cuts, Failure):
        return cuts
    shots = tuple(_measure_shot(scan, shot) for shot in split_shots(scan, cuts))
    if not settings.prints:
        return ScannedFile(shots=shots)
    own = fingerprint(scan, find_borders(scan.picked))
    return FingerprintedScan(shots=shots, fingerprint=own)


@lru_cache(maxsize=1)
def _load_transnet() -> TransNet:
    return TransNet()


def _measure_shot(scan: ClipScan, shot: FrameShot) -> MeasuredShot:
    part = _select_shot_scan(scan, shot)
    measured = measure(part, clip="")
    return MeasuredShot(
        first_frame=shot.first_frame,
        end_frame=shot.first_frame + shot.n_frames,
        start_s=shot.start_s,
        length_s=shot.length_s,
        borders=find_borders(part.picked),
        motion=measured.motion,
        sharpness=measured.sharpness,
        noise=measured.noise,
        lightness=measured.lightness,
    )


def _select_shot_scan(scan: ClipScan, shot: FrameShot) -> ClipScan:
    """Return the scan of one shot.

    A shot that is too short to contain a picked frame gets the picked frames of the whole clip.
    """
    place = slice(shot.first_frame, shot.first_frame + shot.n_frames)
    picked = tuple(frame for frame in scan.picked if place.start <= frame.index < place.stop)
    return replace(
        scan,
        instants_s=scan.instants_s[place],
        end_s=shot.end_s,
        histograms=scan.histograms[place],
        lightness=scan.lightness[place],
        changes=scan.changes[place],
        stirs=scan.stirs[place],
        picked=picked or scan.picked,
    )
