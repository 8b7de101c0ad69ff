"""Our cut detector as one of PySceneDetect's: `SceneManager().add_detector(ColourDetector())`."""

from typing import Any, Final

import numpy as np
from scenedetect import FrameTimecode, SceneDetector

from unreel.curation.split.shots import THRESHOLD, colour_distances
from unreel.media.picture import fit_longest
from unreel.media.scan import SMALL_SIDE, colour_histogram

METRIC: Final = "bhattacharyya"


class ColourDetector(SceneDetector):
    """Cut detector: the distance of two frames' colour histograms must exceed `threshold`.

    The distance is the Bhattacharyya distance. Frames arrive one by one, so only the threshold
    applies; `find_cuts` also detects isolated peaks.
    """

    def __init__(self, threshold: float = THRESHOLD) -> None:
        super().__init__()
        self._threshold = threshold
        self._before: Any = None

    def process_frame(self, timecode: FrameTimecode, frame_img: Any) -> list[FrameTimecode]:
        """Return the timecode of `frame_img` (blue, green, red) in a list; empty if no new shot begins."""
        now = colour_histogram(fit_longest(np.ascontiguousarray(frame_img[..., ::-1]), SMALL_SIDE))
        before, self._before = self._before, now
        if before is None:
            return []
        distance = float(colour_distances(np.stack([before, now]))[1])
        if self.stats_manager is not None:
            self.stats_manager.set_metrics(timecode, {METRIC: distance})
        return [timecode] if distance > self._threshold else []

    def get_metrics(self) -> list[str]:
        """Return the metric name of the distances in a `StatsManager`."""
        return [METRIC]
