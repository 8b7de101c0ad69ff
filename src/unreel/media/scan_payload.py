"""Reply of the task `scan`: conversion of a scan to a payload, and validation of the payload.

Blobs: the ticks of all frames, their histograms, lightness, changes and stirs; then the pixels and
the side profiles for each picked frame. Numbers are little endian.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unreel.media.messages import MOST_S, TaskReplyPayload, format_fraction, require_valid_reply
from unreel.media.scan import (
    FULL,
    HISTOGRAM_BINS,
    MAX_SCANNED,
    PICKED_SIDE,
    ClipScan,
    FrameSide,
    FrameSideProfile,
    PickedFrame,
)
from unreel.media.task_schemas import ScanReplyHeader

_PER_FRAME = 5
_PER_PICKED = 2


def build_scan_payload(scan: ClipScan) -> TaskReplyPayload:
    """Convert a scan to the payload of a reply; `parse_scan_payload` is the inverse."""
    time_base = _compute_common_tick(scan)
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
    require_valid_reply(int(ticks[0]) == 0, "its first frame does not appear at 0")
    lasts = int(ticks[-1]) + header.last_ticks
    require_valid_reply(lasts * header.time_base <= MOST_S, "a time is out of range")
    instants_s = tuple(int(tick) * header.time_base for tick in ticks)
    return ClipScan(
        width=header.width,
        height=header.height,
        instants_s=instants_s,
        end_s=instants_s[-1] + header.last_ticks * header.time_base,
        histograms=np.frombuffer(blobs[1], np.uint8).reshape(n_frames, HISTOGRAM_BINS),
        lightness=_parse_grey_levels(blobs[2]),
        changes=_parse_grey_levels(blobs[3]),
        stirs=_parse_grey_levels(blobs[4]),
        picked=tuple(_iter_picked_frames(header, blobs[_PER_FRAME:], instants_s)),
    )


def _compute_common_tick(scan: ClipScan) -> Fraction:
    """Return the longest time unit of which every frame time of the scan is a multiple."""
    instants = {*scan.instants_s, scan.end_s}
    per_second = math.lcm(*(at_s.denominator for at_s in instants))
    step = math.gcd(*(int(at_s * per_second) for at_s in instants))
    return Fraction(step, per_second)


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


def _iter_picked_frames(
    header: ScanReplyHeader, blobs: tuple[bytes, ...], instants_s: tuple[Fraction, ...]
) -> Iterator[PickedFrame]:
    before = -1
    for index, frame in enumerate(header.picked):
        pixels, lines = blobs[_PER_PICKED * index : _PER_PICKED * (index + 1)]
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
        yield PickedFrame(
            index=frame.index,
            at_s=instants_s[frame.index],
            rgb=np.frombuffer(pixels, np.uint8).reshape(frame.height, frame.width, 3),
            sharpness=frame.sharpness,
            noise=frame.noise,
            sides=sides,
        )
