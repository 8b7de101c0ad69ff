"""Boxes as a screen draws them between key frames."""

from collections.abc import Sequence
from itertools import pairwise

from unreel.annotation.interfaces.label_studio_tasks import ScreenKeyFrame
from unreel.core.box import Box


def box_on(keys: Sequence[ScreenKeyFrame], frame: int) -> Box | None:
    """The box that a screen draws on a frame, counted from 1; nothing where it is not seen."""
    before = [key for key in keys if key.frame <= frame]
    if not before or not (before[-1].enabled or before[-1].frame == frame):
        return None
    for left, right in pairwise(keys):
        if left.frame <= frame < right.frame:
            return _between(left, right, frame)
    return before[-1].box


def _between(left: ScreenKeyFrame, right: ScreenKeyFrame, frame: int) -> Box:
    share = (frame - left.frame) / (right.frame - left.frame)
    old, new = left.box, right.box
    return Box(
        _mix(old.x0, new.x0, share),
        _mix(old.y0, new.y0, share),
        _mix(old.x1, new.x1, share),
        _mix(old.y1, new.y1, share),
    )


def _mix(old: float, new: float, share: float) -> float:
    return min(1.0, old + (new - old) * share)
