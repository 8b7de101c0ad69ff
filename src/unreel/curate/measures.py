"""What one pass over a file measures: its shots with their borders, and the fingerprint of the whole."""

import base64
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, PlainSerializer

from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.media.scan import N_PICKED
from unreel.media.wire import write_exact

_PART: Final = 0.05
_HALF: Final = _PART / 2
TRIMS: Final = (
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
"""Parts of a frame cut off before it is hashed: left, top, right, bottom. Against a cropped copy: each of
one clip is compared with each of the other."""
_FIFTH: Final = 0.2
UNSTAMPED: Final = ((0.0, 0.0, 0.0, _FIFTH), (0.0, _FIFTH, 0.0, 0.0))
"""Parts left out against a stamped copy: compared with the same of the other clip."""
WAYS: Final = (*TRIMS, *UNSTAMPED)
SKETCH_SIDE: Final = 8
HASH_WORDS: Final = 4
_SKETCH_BYTES: Final = SKETCH_SIDE**2
_HASHES_BYTES: Final = len(WAYS) * N_PICKED * HASH_WORDS * 8


def _from_base64(value: object) -> object:
    return base64.b64decode(value, validate=True) if isinstance(value, str) else value


def _to_base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


Base64 = Annotated[bytes, BeforeValidator(_from_base64), PlainSerializer(_to_base64)]
ExactSeconds = Annotated[Fraction, PlainSerializer(write_exact)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Borders:
    """Widths of the bars in pixels of the clip as shown; 0 where there is none."""

    left: int = 0
    top: int = 0
    right: int = 0
    bottom: int = 0

    def __bool__(self) -> bool:
        return any((self.left, self.top, self.right, self.bottom))

    def content(self, *, width: int, height: int) -> Box:
        """The picture inside the bars, in parts of a frame of `width` x `height` pixels."""
        return Box(
            self.left / width,
            self.top / height,
            1 - self.right / width,
            1 - self.bottom / height,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What is compared of a clip to tell whether another one shows the same."""

    sketch: Base64
    """Mean grey levels of an 8 x 8 grid, over the picked frames."""
    hashes: Base64
    """256 bits for each of `WAYS` and each of `N_PICKED` frames."""

    def __post_init__(self) -> None:
        if len(self.sketch) != _SKETCH_BYTES or len(self.hashes) != _HASHES_BYTES:
            msg = "a fingerprint has another length in this release. Scan the clip again"
            raise InvalidValueError(msg)

    def words(self) -> NDArray[np.uint64]:
        """The hashes by way, frame and word."""
        return np.frombuffer(self.hashes, "<u8").reshape(len(WAYS), N_PICKED, HASH_WORDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredShot:
    """A run of frames without a cut, as it lies in its file, and what screens judge it by."""

    first_frame: int
    end_frame: int
    start_s: ExactSeconds
    """From the file's first frame."""
    length_s: ExactSeconds
    borders: Borders
    motion: float
    sharpness: float
    noise: float
    lightness: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """What a scan found in a file; together the shots are all of it."""

    shots: tuple[MeasuredShot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FingerprintedScan(Scanned):
    """The same with the fingerprint of the whole file."""

    fingerprint: Fingerprint
