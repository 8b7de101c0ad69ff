"""Our cut detector as one of PySceneDetect's: `SceneManager().add_detector(ColourDetector())`."""

from typing import Any, Final

import numpy as np
from scenedetect import FrameTimecode, SceneDetector

from unreel.curation.split.shots import THRESHOLD, colour_distances
from unreel.media.picture import fit_longest
from unreel.media.scan import SMALL_SIDE, colour_histogram

METRIC: Final = "bhattacharyya"


class ColourDetector(SceneDetector):
    """Cuts where the Bhattacharyya distance of two frames' colour histograms exceeds `threshold`.

    Frames come one by one here, so only the threshold is applied; `find_cuts` also sees lonely peaks.
    """

    def __init__(self, threshold: float = THRESHOLD) -> None:
        super().__init__()
        self._threshold = threshold
        self._before: Any = None

    def process_frame(self, timecode: FrameTimecode, frame_img: Any) -> list[FrameTimecode]:
        """The timecode of `frame_img` (blue, green, red) if a new shot begins with it."""
        now = colour_histogram(fit_longest(np.ascontiguousarray(frame_img[..., ::-1]), SMALL_SIDE))
        before, self._before = self._before, now
        if before is None:
            return []
        distance = float(colour_distances(np.stack([before, now]))[1])
        if self.stats_manager is not None:
            self.stats_manager.set_metrics(timecode, {METRIC: distance})
        return [timecode] if distance > self._threshold else []

    def get_metrics(self) -> list[str]:
        """The name under which a `StatsManager` gets the distances."""
        return [METRIC]
