"""Fingerprint of a clip, stable under re-encoding, scaling, cropping and logos; its border bars.

Each frame is hashed with PDQ after its borders are removed. A plain PDQ hash changes too much
after a crop of 5%, so each frame is hashed complete and with its edges trimmed in several ways.
A logo on a plain picture also changes the hash, so each frame is also hashed without its top
and without its bottom, where logos and lines of text usually are.
"""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import BeforeValidator, PlainSerializer

from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.registry import LazyImport
from unreel.media.messages import N_PICKED
from unreel.media.scan import FULL, ClipScan, FrameSide, PickedFrame

THINNEST_PX = 2
"""Minimum width of a bar in pixels; encoders leave thinner ones at an edge."""
STEADY = 4
EMPTY_SHARE = 0.01
"""Maximum fraction of a line inside a bar that may differ from the bar, because of compression."""
EDGE_SHARE = 0.3
"""Minimum fraction of a line that must differ from the bar for the picture to begin there."""
EDGE_PX = 8
"""Number of lines over which an edge may be blurred: one block of a codec."""
STEP_PX = 3
STEP_SHARE = 0.15
"""Maximum fraction of a line that may differ from the bar, `STEP_PX` lines before the picture begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BorderWidths:
    """Widths of a clip's border bars, in pixels of the displayed frame; 0 for a side without a bar."""

    left: int = 0
    top: int = 0
    right: int = 0
    bottom: int = 0

    def __bool__(self) -> bool:
        return any((self.left, self.top, self.right, self.bottom))

    def content(self, *, width: int, height: int) -> Box:
        """Return the area inside the bars, as fractions of a frame of `width` x `height` pixels."""
        return Box(
            self.left / width, self.top / height, 1 - self.right / width, 1 - self.bottom / height
        )


def find_frame_borders(frames: Sequence[PickedFrame]) -> BorderWidths:
    """Find the uniform border bars that all `frames` of a clip share."""
    return BorderWidths(**{side.value: _count_border_lines(frames, side) for side in FrameSide})


def _count_border_lines(frames: Sequence[PickedFrame], side: FrameSide) -> int:
    """Return the width in pixels of the border bar at `side`; 0 without a clear bar."""
    profiles = [frame.sides[side] for frame in frames if side in frame.sides]
    if not profiles or len(profiles) < len(frames):
        return 0
    levels = [profile.level for profile in profiles]
    if max(levels) - min(levels) > STEADY:
        return 0
    # Maximum over the frames, because a frame that is dark at its edge hides the edge.
    proportions = np.max([profile.content for profile in profiles], axis=0) / FULL
    filled = np.flatnonzero(proportions >= EDGE_SHARE)
    if not len(filled) or filled[0] < THINNEST_PX:
        return 0
    edge = int(filled[0])
    inside = proportions[: max(1, edge - EDGE_PX)]
    straight = edge < STEP_PX or proportions[edge - STEP_PX] <= STEP_SHARE
    return edge if straight and float(inside.max()) <= EMPTY_SHARE else 0


_PART = 0.05
_HALF = _PART / 2
TRIMS = (
    (0.0, 0.0, 0.0, 0.0),
    (_HALF, _HALF, _HALF, _HALF),
    (_PART, _PART, _PART, _PART),
    (_PART, 0.0, 0.0, 0.0),
    (0.0, _PART, 0.0, 0.0),
    (0.0, 0.0, _PART, 0.0),
    (0.0, 0.0, 0.0, _PART),
    (_PART, _PART, 0.0, 0.0),
    (0.0, _PART, _PART, 0.0),
    (_PART, 0.0, 0.0, _PART),
    (0.0, 0.0, _PART, _PART),
)
"""Fractions of a frame cut off before it is hashed: left, top, right, bottom. To find cropped copies, each trimming of
one clip is compared with each of the other."""
_FIFTH = 0.2
UNSTAMPED = ((0.0, 0.0, 0.0, _FIFTH), (0.0, _FIFTH, 0.0, 0.0))
"""Fractions cut off to find copies with a logo; each is compared with the same trimming of the other clip."""
WAYS = (*TRIMS, *UNSTAMPED)
SKETCH_SIDE = 8
HASH_WORDS = 4
_SKETCH_BYTES = SKETCH_SIDE**2
_HASHES_BYTES = len(WAYS) * N_PICKED * HASH_WORDS * 8
_WIDE = 128
_NARROW = 64
_PDQ = LazyImport("pdqhash:compute", extra="curate")


def _decode_base64(value: object) -> object:
    return base64.b64decode(value, validate=True) if isinstance(value, str) else value


def _encode_base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


Base64 = Annotated[bytes, BeforeValidator(_decode_base64), PlainSerializer(_encode_base64)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipFingerprint:
    """Fingerprint of a clip's content, to find copies of it."""

    sketch: Base64
    """Mean grey levels of an 8 x 8 grid, over the picked frames."""
    hashes: Base64
    """Hashes of 256 bits, one for each of `WAYS` and each of `N_PICKED` frames."""

    def __post_init__(self) -> None:
        if len(self.sketch) != _SKETCH_BYTES or len(self.hashes) != _HASHES_BYTES:
            raise InvalidValueError(
                "a fingerprint has another length in this release. Scan the clip again"
            )

    def words(self) -> NDArray[np.uint64]:
        """Return the frame hashes as an array with the axes trimming, frame and 64-bit word."""
        return np.frombuffer(self.hashes, "<u8").reshape(len(WAYS), N_PICKED, HASH_WORDS)


def compute_clip_fingerprint(scan: ClipScan, borders: BorderWidths) -> ClipFingerprint:
    """Compute the fingerprint of a clip from the picked frames of its scan, without border bars."""
    pictures = [_extract_content_picture(frame, borders, scan=scan) for frame in scan.picked]
    grids = [
        np.asarray(picture.resize((SKETCH_SIDE, SKETCH_SIDE), Image.Resampling.BOX), np.float64)
        for picture in pictures
    ]
    sketch = np.rint(np.mean(grids, axis=0)).astype(np.uint8)
    return ClipFingerprint(sketch=sketch.tobytes(), hashes=_hash_trimmed_pictures(pictures, WAYS))


def hash_picked_frames(scan: ClipScan, borders: BorderWidths) -> bytes:
    """Return 256-bit hashes of the `N_PICKED` frames of a scan, trimmed only by the border bars."""
    return _hash_trimmed_pictures(
        [_extract_content_picture(frame, borders, scan=scan) for frame in scan.picked], TRIMS[:1]
    )


def _hash_trimmed_pictures(
    pictures: Sequence[Image.Image], ways: Sequence[tuple[float, float, float, float]]
) -> bytes:
    # If a clip has fewer than `N_PICKED` frames, its frames are repeated.
    sampled = [pictures[index * len(pictures) // N_PICKED] for index in range(N_PICKED)]
    return b"".join(_compute_frame_hash(picture, way) for way in ways for picture in sampled)


def _extract_content_picture(
    frame: PickedFrame, borders: BorderWidths, *, scan: ClipScan
) -> Image.Image:
    """Return the frame without its borders, as a grey picture of 128 x 128 pixels."""
    inner = borders.content(width=scan.width, height=scan.height)
    across, down = frame.width, frame.height
    box = (inner.x0 * across, inner.y0 * down, inner.x1 * across, inner.y1 * down)
    grey = Image.fromarray(frame.rgb).convert("L")
    return grey.resize((_WIDE, _WIDE), Image.Resampling.BOX, box=box)


def _compute_frame_hash(picture: Image.Image, trim: tuple[float, float, float, float]) -> bytes:
    left, top, right, bottom = (part * _WIDE for part in trim)
    box = (left, top, _WIDE - right, _WIDE - bottom)
    small = picture.resize((_NARROW, _NARROW), Image.Resampling.BILINEAR, box=box)
    bits, _ = _PDQ.load()(np.asarray(small.convert("RGB")))
    return np.packbits(np.asarray(bits, np.uint8)).tobytes()


_READ_AT_ONCE = 4_096

Places = NDArray[np.intp]
Words = NDArray[np.uint64]
"""Frame hashes: an array with the axes clip, trimming, frame and 64-bit word."""


class FingerprintSet(Protocol):
    """Interface of the fingerprints of many clips: sketches in memory, hashes read when needed."""

    @property
    def names(self) -> Sequence[str]:
        """Return the name of each clip."""

    @property
    def sketches(self) -> NDArray[np.uint8]:
        """Return the sketch of each clip: one row of 64 grey levels."""

    def words(self, indices: Places) -> Words:
        """Return the frame hashes of the clips at `indices`."""


class LargeFingerprintSet(FingerprintSet, Protocol):
    """Interface of the fingerprints of a large set of clips, which can also be read in blocks."""

    def blocks(self) -> Iterator[tuple[Places, Words]]:
        """Yield the indices and frame hashes of all clips in blocks, in the fastest order of reading."""


class InMemoryFingerprints:
    """Set of clip fingerprints that are all in memory."""

    def __init__(self, prints: Sequence[tuple[str, ClipFingerprint]]) -> None:
        self.names = [name for name, _ in prints]
        grids = np.frombuffer(b"".join(fingerprint.sketch for _, fingerprint in prints), np.uint8)
        self.sketches = grids.reshape(len(prints), SKETCH_SIDE**2)
        self._own = [fingerprint for _, fingerprint in prints]

    def words(self, indices: Places) -> Words:
        """Return the frame hashes of the clips at `indices`."""
        return np.stack([self._own[index].words() for index in indices.tolist()])

    def blocks(self) -> Iterator[tuple[Places, Words]]:
        """Yield the indices and frame hashes of all clips in blocks, in order."""
        for start in range(0, len(self._own), _READ_AT_ONCE):
            indices = np.arange(start, min(start + _READ_AT_ONCE, len(self._own)))
            yield indices, self.words(indices)
