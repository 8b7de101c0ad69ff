"""Scan of a clip: one decoding pass that measures every frame and keeps a few frames.

The reply of the task `scan` has these blobs: the ticks of all frames, their histograms, lightness,
changes and stirs; then the pixels and the side profiles for each picked frame. Numbers are little
endian.

For every frame, the pass stores its exact time, a colour histogram, its lightness and its
difference from the previous frame. `N_PICKED` evenly spaced frames are kept as pictures, with
the full-size data that border detection needs. Memory grows by `HISTOGRAM_BINS` bytes per
frame, independent of the frame size.
"""

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, BinaryIO, assert_never

import numpy as np
from av.video.frame import VideoFrame
from av.video.reformatter import Interpolation, VideoReformatter
from numpy.typing import NDArray

from unreel.core.errors import MediaError
from unreel.core.failure import FailureReason
from unreel.media.container import open_clip
from unreel.media.decode import Rgb
from unreel.media.messages import (
    MAX_S,
    N_PICKED,
    TaskReplyPayload,
    format_fraction,
    require_valid_reply,
)
from unreel.media.probe import get_clockwise_rotation
from unreel.media.sampling import parse_sampling, plan_frames
from unreel.media.task_schemas import ScanReplyHeader
from unreel.media.timeline import FrameTimeline, read_frame_timeline

Luma = NDArray[np.uint8]
Floats = NDArray[np.float32]

PICKED_PLAN = f"uniform-{N_PICKED}"
PICKED_SIDE = 448
LEVELS = 8
HISTOGRAM_BINS = LEVELS**3
FULL = 255
"""Integer that represents a fraction of 1 in a histogram or a side's profile."""
MAX_SCANNED = 200_000
"""Maximum number of frames, two hours at 24 frames a second: a limit for files that declare no end."""

SMALL_SIDE = 96
"""Longest side, in pixels, of the picture from which histograms, lightness and changes are computed."""
STIR_PART = 100
STIR_S = Fraction(1, 2)
_PAST_FRAMES = 64
"""Maximum number of small past frames in memory: half a second at up to 128 frames a second."""
FLAT_STD = 3.0
"""Maximum standard deviation of the outermost line of a border, in grey levels; a codec adds some variation."""
MIN_DIFFERENCE = 10
"""Difference from the outermost line, in grey levels, above which a pixel is content. Colour is not compared, because
codecs smear it over the edge of a bar."""
_ROW_STEP = 4
_TO_SIGMA = 0.6745 * 6**0.5
"""Median of |a - 2b + c| for independent normal noise with standard deviation 1."""


class FrameSide(StrEnum):
    """The four sides of a frame."""

    LEFT = "left"
    TOP = "top"
    RIGHT = "right"
    BOTTOM = "bottom"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FrameSideProfile:
    """Profile of one flat side of a frame: how much content each line has, for border detection."""

    level: int
    content: NDArray[np.uint8]
    """Fraction of each line's pixels that differ from `level` by more than `MIN_DIFFERENCE`, times `FULL`."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PickedFrame:
    """One of the evenly spaced frames of a scan, as a small picture with full-size measurements."""

    index: int
    at_s: Fraction
    rgb: Rgb
    sharpness: float
    """Root mean square of second differences along rows, in grey levels; lower for a blurred frame."""
    noise: float
    """Standard deviation of the noise in grey levels, estimated from the median second difference."""
    sides: dict[FrameSide, FrameSideProfile]
    """Profiles of the sides whose outermost line is flat; a side that is absent has no border."""

    @property
    def width(self) -> int:
        """Return the width of the small picture in pixels."""
        return int(self.rgb.shape[1])

    @property
    def height(self) -> int:
        """Return the height of the small picture in pixels."""
        return int(self.rgb.shape[0])


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ClipScan:
    """Result of a scan: measurements of every frame, some frames as pictures, and the displayed size."""

    width: int
    height: int
    instants_s: tuple[Fraction, ...]
    """Display time of each frame, in seconds after the clip's first frame."""
    end_s: Fraction
    """End of the last frame, in seconds after the start of the first."""
    histograms: NDArray[np.uint8]
    """Histograms, one row per frame: square roots of the fractions of `HISTOGRAM_BINS` colours, times `FULL`."""
    lightness: Floats
    changes: Floats
    """Mean grey-level difference of each frame from the previous one, at a small size; 0 for the first."""
    stirs: Floats
    """Mean grey-level difference of each frame from the one `STIR_S` before it, or from the first, over the hundredth
    of the pixels that differ most. A small moving object in a still scene raises this more than `changes`."""
    picked: tuple[PickedFrame, ...]

    @property
    def n_frames(self) -> int:
        """Return the number of shown frames."""
        return len(self.instants_s)

    @property
    def duration_s(self) -> Fraction:
        """Return the time from the first frame's start to the last frame's end, in seconds."""
        return self.end_s - self.instants_s[0]


def scan_clip(file: BinaryIO, *, max_pixels: int) -> ClipScan:
    """Measure every frame of the clip in `file` in one decoding pass.

    Raise `MediaError` if the clip cannot be decoded, or it has more than 200,000 frames.
    """
    timeline = read_frame_timeline(file, max_pixels=max_pixels)
    if timeline.n_frames > MAX_SCANNED:
        raise MediaError(
            FailureReason.TOO_LONG,
            f"the clip has {timeline.n_frames} frames, more than {MAX_SCANNED}",
        )
    indices = frozenset(plan_frames(parse_sampling(PICKED_PLAN), timeline).indices)
    meter = FrameMeasurementCollector(timeline.n_frames)
    picked: list[PickedFrame] = []
    shape = (0, 0)
    for index, frame in _iter_verified_frames(file, timeline, max_pixels=max_pixels):
        meter.add(frame, at_s=timeline.at_s(index))
        if index in indices:
            picked.append(measure_picked_frame(frame, index=index, at_s=timeline.at_s(index)))
        if not index:
            is_rotated = get_clockwise_rotation(frame) % 180
            shape = (frame.height, frame.width) if is_rotated else (frame.width, frame.height)
    return ClipScan(
        width=shape[0],
        height=shape[1],
        instants_s=tuple(timeline.at_s(index) for index in range(timeline.n_frames)),
        end_s=timeline.duration_s,
        histograms=meter.histograms,
        lightness=meter.lightness,
        changes=meter.changes,
        stirs=meter.stirs,
        picked=tuple(picked),
    )


class FrameMeasurementCollector:
    """Collector of the measurements of a clip's frames, which are added one by one."""

    def __init__(self, n_frames: int) -> None:
        self.histograms = np.zeros((n_frames, HISTOGRAM_BINS), np.uint8)
        self.lightness = np.zeros(n_frames, np.float32)
        self.changes = np.zeros(n_frames, np.float32)
        self.stirs = np.zeros(n_frames, np.float32)
        self._place = 0
        self._past: deque[tuple[Fraction, NDArray[np.int16]]] = deque(maxlen=_PAST_FRAMES)
        self._scaler = VideoReformatter()

    def add(self, frame: VideoFrame, *, at_s: Fraction) -> None:
        """Measure the next frame, which appears at `at_s`."""
        width, height = _compute_limited_size(frame.width, frame.height, SMALL_SIDE)
        rgb = _scale_frame(self._scaler, frame, width=width, height=height)
        index, self._place = self._place, self._place + 1
        self.histograms[index] = compute_colour_histogram(rgb)
        grey = compute_grey_levels(rgb)
        self.lightness[index] = grey.mean()
        past = self._past
        if past and past[-1][1].shape != grey.shape:
            past.clear()  # Some streams change their frame size.
        if past:
            self.changes[index] = np.abs(grey - past[-1][1]).mean()
            while len(past) > 1 and at_s - past[1][0] >= STIR_S:
                past.popleft()
            differences = np.abs(grey - past[0][1]).ravel()
            count = max(1, differences.size // STIR_PART)
            self.stirs[index] = np.partition(differences, -count)[-count:].mean()
        past.append((at_s, grey))


def compute_colour_histogram(rgb: Rgb) -> NDArray[np.uint8]:
    """Return `HISTOGRAM_BINS` square roots of the fractions of pixels by colour, times `FULL`."""
    coarse = (rgb // (256 // LEVELS)).astype(np.int16)
    bins = (coarse[..., 0] * LEVELS + coarse[..., 1]) * LEVELS + coarse[..., 2]
    counts = np.bincount(bins.ravel(), minlength=HISTOGRAM_BINS)
    roots: NDArray[np.uint8] = np.rint(FULL * np.sqrt(counts / bins.size)).astype(np.uint8)
    return roots


def compute_grey_levels(rgb: Rgb) -> NDArray[np.int16]:
    """Return the luma of each pixel by ITU-R BT.601, from 0 to 255."""
    red, green, blue = (rgb[..., channel].astype(np.int32) for channel in range(3))
    grey: NDArray[np.int16] = ((299 * red + 587 * green + 114 * blue) // 1000).astype(np.int16)
    return grey


def measure_picked_frame(frame: VideoFrame, *, index: int, at_s: Fraction) -> PickedFrame:
    """Build the small, rotated picture of a frame, and measure the frame at full size."""
    turns = get_clockwise_rotation(frame) // 90
    width, height = _compute_limited_size(frame.width, frame.height, PICKED_SIDE)
    small = np.rot90(_scale_frame(VideoReformatter(), frame, width=width, height=height), -turns)
    luma = np.rot90(frame.to_ndarray(format="gray", threads=1).astype(np.uint8, copy=False), -turns)
    bends = np.abs(np.diff(luma[::_ROW_STEP].astype(np.int16), n=2, axis=1))
    return PickedFrame(
        index=index,
        at_s=at_s,
        rgb=np.ascontiguousarray(small),
        sharpness=float(np.sqrt(np.mean(np.square(bends, dtype=np.float32))))
        if bends.size
        else 0.0,
        noise=_compute_interpolated_median(bends) / _TO_SIGMA if bends.size else 0.0,
        sides={
            side: profile
            for side in FrameSide
            if (profile := compute_side_profile(_orient_lines_inwards(luma, side)))
        },
    )


def _compute_interpolated_median(levels: NDArray[np.int16]) -> float:
    """Return the median of integers >= 0, interpolated as if each were spread evenly over one unit."""
    below = np.cumsum(np.bincount(levels.ravel())) / levels.size
    level = int(np.searchsorted(below, 0.5))
    before = float(below[level - 1]) if level else 0.0
    return max(0.0, level - 0.5 + (0.5 - before) / (float(below[level]) - before))


def compute_side_profile(lines: Luma) -> FrameSideProfile | None:
    """Return the profile of the side at which `lines` begin; `None` if the outermost line is not flat."""
    if lines[0].std() > FLAT_STD:
        return None
    level = round(float(np.median(lines[0])))
    # Wraps around deliberately: levels from level - STANDS_OUT on become 0, 1, 2, ...
    inner = lines[: max(1, len(lines) // 2)] - np.uint8((level - MIN_DIFFERENCE) % 256)
    proportions = (inner > 2 * MIN_DIFFERENCE).mean(axis=1)
    return FrameSideProfile(level=level, content=np.rint(FULL * proportions).astype(np.uint8))


def _orient_lines_inwards(picture: Luma, side: FrameSide) -> Luma:
    match side:
        case FrameSide.LEFT:
            return picture.T
        case FrameSide.RIGHT:
            return picture.T[::-1]
        case FrameSide.TOP:
            return picture
        case FrameSide.BOTTOM:
            return picture[::-1]
        case _ as never:
            assert_never(never)


def _iter_verified_frames(
    file: BinaryIO, timeline: FrameTimeline, *, max_pixels: int
) -> Iterator[tuple[int, VideoFrame]]:
    """Yield every frame of the clip with its index, checked against `timeline`.

    Raise `MediaError` if a frame is damaged, is missing, or has another time than in `timeline`.
    """
    index = 0
    with open_clip(file, max_pixels=max_pixels) as clip:
        for frame in clip.container.decode(clip.stream):
            if index == timeline.n_frames or _get_frame_time_s(frame) != timeline.presented_s(
                index
            ):
                raise MediaError(
                    FailureReason.UNDECODABLE,
                    f"frame {index} came out at {_get_frame_time_s(frame)} s, not as its packets say",
                )
            if frame.is_corrupt:
                raise MediaError(FailureReason.UNDECODABLE, f"frame {index} is damaged")
            yield index, frame
            index += 1
    if index < timeline.n_frames:
        raise MediaError(
            FailureReason.UNDECODABLE,
            f"the decoder stopped before frame {index} of {timeline.n_frames}",
        )


def _get_frame_time_s(frame: VideoFrame) -> Fraction | None:
    if frame.pts is None or frame.time_base is None:
        return None
    return frame.pts * frame.time_base


def _compute_limited_size(width: int, height: int, longest: int) -> tuple[int, int]:
    scale = min(Fraction(1), Fraction(longest, max(width, height)))
    return max(1, round(width * scale)), max(1, round(height * scale))


def _scale_frame(scaler: VideoReformatter, frame: VideoFrame, *, width: int, height: int) -> Rgb:
    small = scaler.reformat(
        frame,
        width=width,
        height=height,
        format="rgb24",
        interpolation=Interpolation.AREA,
        threads=1,
    )
    pixels: Rgb = small.to_ndarray(threads=1).astype(np.uint8, copy=False)
    return pixels


_PER_FRAME = 5
_PER_PICKED = 2


def build_scan_payload(scan: ClipScan) -> TaskReplyPayload:
    """Convert a scan to the payload of a reply; `parse_scan_payload` is the inverse."""
    instants = {*scan.instants_s, scan.end_s}
    per_second = math.lcm(*(at_s.denominator for at_s in instants))
    step = math.gcd(*(int(at_s * per_second) for at_s in instants))
    time_base = Fraction(step, per_second)
    ticks = [int(at_s / time_base) for at_s in scan.instants_s]
    header = {
        "width": scan.width,
        "height": scan.height,
        "n_frames": scan.n_frames,
        "time_base": format_fraction(time_base),
        "last_ticks": int(scan.end_s / time_base) - ticks[-1],
        "picked": [_build_picked_header(frame) for frame in scan.picked],
    }
    blobs = [
        np.array(ticks, "<i8").tobytes(),
        scan.histograms.tobytes(),
        scan.lightness.astype("<f4").tobytes(),
        scan.changes.astype("<f4").tobytes(),
        scan.stirs.astype("<f4").tobytes(),
    ]
    for frame in scan.picked:
        blobs.append(frame.rgb.tobytes())
        blobs.append(
            b"".join(frame.sides[s].content.tobytes() for s in FrameSide if s in frame.sides)
        )
    return TaskReplyPayload(header, tuple(blobs))


def parse_scan_payload(payload: TaskReplyPayload) -> ClipScan:
    """Return the scan in an untrusted reply; raise `InvalidValueError` if it is out of range."""
    header = ScanReplyHeader.model_validate(payload.header)
    n_frames, blobs = header.n_frames, payload.blobs
    require_valid_reply(n_frames <= MAX_SCANNED, "there are more frames than may be scanned")
    require_valid_reply(
        len(blobs) == _PER_FRAME + _PER_PICKED * len(header.picked), "blobs are missing"
    )
    sizes = [len(blob) for blob in blobs[:_PER_FRAME]]
    require_valid_reply(
        sizes == [width * n_frames for width in (8, HISTOGRAM_BINS, 4, 4, 4)],
        "there is not one measure for each frame",
    )
    ticks = np.frombuffer(blobs[0], "<i8")
    # Compared, not subtracted: the difference of two such ticks may overflow.
    require_valid_reply(bool(np.all(ticks[1:] >= ticks[:-1])), "frames are out of order")
    require_valid_reply(int(ticks[0]) == 0, "the first frame does not appear at 0")
    lasts = int(ticks[-1]) + header.last_ticks
    require_valid_reply(lasts * header.time_base <= MAX_S, "a time is out of range")
    instants_s = tuple(int(tick) * header.time_base for tick in ticks)
    picked: list[PickedFrame] = []
    picked_blobs = blobs[_PER_FRAME:]
    before = -1
    for index, frame in enumerate(header.picked):
        pixels, lines = picked_blobs[_PER_PICKED * index : _PER_PICKED * (index + 1)]
        require_valid_reply(
            before < frame.index < len(instants_s), "picked frames are out of order"
        )
        require_valid_reply(
            max(frame.width, frame.height) <= PICKED_SIDE, "a picture is larger than requested"
        )
        require_valid_reply(len(pixels) == 3 * frame.width * frame.height, "a picture lacks pixels")
        before = frame.index
        halves = {
            side: max(
                1,
                (header.width if side in (FrameSide.LEFT, FrameSide.RIGHT) else header.height) // 2,
            )
            for side in FrameSide
            if side in frame.levels
        }
        require_valid_reply(
            len(lines) == sum(halves.values()), "a side's profile has not one value for each line"
        )
        sides: dict[FrameSide, FrameSideProfile] = {}
        start = 0
        for side, half in halves.items():
            content = np.frombuffer(lines[start : start + half], np.uint8)
            sides[side] = FrameSideProfile(level=frame.levels[side.value], content=content)
            start += half
        picked.append(
            PickedFrame(
                index=frame.index,
                at_s=instants_s[frame.index],
                rgb=np.frombuffer(pixels, np.uint8).reshape(frame.height, frame.width, 3),
                sharpness=frame.sharpness,
                noise=frame.noise,
                sides=sides,
            )
        )
    return ClipScan(
        width=header.width,
        height=header.height,
        instants_s=instants_s,
        end_s=instants_s[-1] + header.last_ticks * header.time_base,
        histograms=np.frombuffer(blobs[1], np.uint8).reshape(n_frames, HISTOGRAM_BINS),
        lightness=_parse_grey_levels(blobs[2]),
        changes=_parse_grey_levels(blobs[3]),
        stirs=_parse_grey_levels(blobs[4]),
        picked=tuple(picked),
    )


def _build_picked_header(frame: PickedFrame) -> dict[str, Any]:
    return {
        "index": frame.index,
        "width": frame.width,
        "height": frame.height,
        "sharpness": frame.sharpness,
        "noise": frame.noise,
        "levels": {side.value: profile.level for side, profile in frame.sides.items()},
    }


def _parse_grey_levels(blob: bytes) -> NDArray[np.float32]:
    levels = np.frombuffer(blob, "<f4").astype(np.float32, copy=False)
    require_valid_reply(
        bool(np.all((levels >= 0) & (levels <= FULL))), "a grey level is out of range"
    )
    return levels
