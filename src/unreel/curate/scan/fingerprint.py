"""The fingerprint of a clip: what stays the same however it is encoded, scaled, cropped or stamped.

A clip is hashed frame by frame with PDQ, its borders cut off first. A plain PDQ hash does not survive
a crop of five per cent, so each frame is hashed whole and with its edges trimmed in several ways; nor a
logo on a plain picture, so it is also hashed without its top and without its bottom, where logos and
lines of text are.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unreel.core.registry import Lazy
from unreel.curate.measures import SKETCH_SIDE, WAYS, Borders, Fingerprint
from unreel.media.scan import N_PICKED, PickedFrame, Scan

_WIDE: Final = 128
_NARROW: Final = 64
_PDQ: Final = Lazy("pdqhash:compute", extra="curate")


def fingerprint(scan: Scan, borders: Borders) -> Fingerprint:
    """The fingerprint of a clip's picked frames inside its borders."""
    whole = [_content(frame, borders, scan=scan) for frame in scan.picked]
    grids = [_resized(picture, SKETCH_SIDE) for picture in whole]
    # A clip of fewer frames than are picked shows each of them for longer.
    shown = [whole[place * len(whole) // N_PICKED] for place in range(N_PICKED)]
    hashes = b"".join(_hash(picture, way) for way in WAYS for picture in shown)
    sketch = np.rint(np.mean(grids, axis=0)).astype(np.uint8)
    return Fingerprint(sketch=sketch.tobytes(), hashes=hashes)


def _content(frame: PickedFrame, borders: Borders, *, scan: Scan) -> Image.Image:
    """The frame inside its borders, grey, at one small size."""
    inner = borders.content(width=scan.width, height=scan.height)
    across, down = frame.width, frame.height
    box = (inner.x0 * across, inner.y0 * down, inner.x1 * across, inner.y1 * down)
    grey = Image.fromarray(frame.rgb).convert("L")
    return grey.resize((_WIDE, _WIDE), Image.Resampling.BOX, box=box)


def _resized(picture: Image.Image, side: int) -> NDArray[np.float64]:
    return np.asarray(picture.resize((side, side), Image.Resampling.BOX), np.float64)


def _hash(picture: Image.Image, trim: tuple[float, float, float, float]) -> bytes:
    left, top, right, bottom = (part * _WIDE for part in trim)
    box = (left, top, _WIDE - right, _WIDE - bottom)
    small = picture.resize((_NARROW, _NARROW), Image.Resampling.BILINEAR, box=box)
    bits, _ = _PDQ.load()(np.asarray(small.convert("RGB")))
    return np.packbits(np.asarray(bits, np.uint8)).tobytes()
