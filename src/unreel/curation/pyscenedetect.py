"""Cut detector by colour for PySceneDetect: `SceneManager().add_detector(ColourCutDetector())`."""

from typing import Any, Final

import numpy as np
from scenedetect import FrameTimecode, SceneDetector

from unreel.curation.shots import THRESHOLD, compute_colour_distances
from unreel.media.picture import scale_down_picture
from unreel.media.scan import SMALL_SIDE, compute_colour_histogram

METRIC: Final = "bhattacharyya"


class ColourCutDetector(SceneDetector):
    """PySceneDetect detector of cuts by the distance of two frames' colour histograms.

    A cut is where the Bhattacharyya distance exceeds `threshold`. Frames arrive one by one, so only
    the threshold applies; `find_colour_cuts` also detects isolated peaks.
    """

    def __init__(self, threshold: float = THRESHOLD) -> None:
        super().__init__()
        self._threshold = threshold
        self._before: Any = None

    def process_frame(self, timecode: FrameTimecode, frame_img: Any) -> list[FrameTimecode]:
        """Return `timecode` in a list if `frame_img` (BGR) begins a new shot, otherwise an empty list."""
        histogram = compute_colour_histogram(
            scale_down_picture(np.ascontiguousarray(frame_img[..., ::-1]), SMALL_SIDE)
        )
        before, self._before = self._before, histogram
        if before is None:
            return []
        distance = float(compute_colour_distances(np.stack([before, histogram]))[1])
        if self.stats_manager is not None:
            self.stats_manager.set_metrics(timecode, {METRIC: distance})
        return [timecode] if distance > self._threshold else []

    def get_metrics(self) -> list[str]:
        """Return the metric name of the distances in a `StatsManager`."""
        return [METRIC]
