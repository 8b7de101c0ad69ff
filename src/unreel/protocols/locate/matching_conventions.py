"""Matching rules of two conventions: which answered segments are right, which true ones found.

`activitynet` follows the definitions of ActivityNet's evaluation code, `avdeepfake1m` those of the
package avdeepfake1m 0.0.4. docs/locate.md lists the differences.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unreel.protocols.locate.metrics import AVERAGED
from unreel.stats.row_sample import Array, BoolArray, IntArray

_MOST_PER_CLIP = 100
"""Number of segments per clip, on average, that ActivityNet's recall considers."""


@dataclass(frozen=True, slots=True, eq=False)
class ClipSegmentOverlaps:
    """Confidences of one clip's answered segments, and their temporal IoU with annotated ones."""

    confidences: Array
    tious: Array
    """Temporal IoU of each answered segment (rows) with each annotated segment (columns)."""


def rank_segments_by_confidence(
    clip: ClipSegmentOverlaps, starts: Sequence[int], ends: Sequence[int]
) -> ClipSegmentOverlaps:
    """Return the overlaps of answered segments sorted by falling confidence, then by start and end."""
    order = np.lexsort((np.asarray(ends), np.asarray(starts), -clip.confidences))
    return ClipSegmentOverlaps(clip.confidences[order], clip.tious[order])


def match_segments_activitynet(tious: Array, threshold: float) -> BoolArray:
    """Return a mask of the right segments, given segments sorted by falling confidence.

    Each segment in turn takes the annotated segment of highest tIoU that no earlier one took, if the
    tIoU reaches the threshold.
    """
    right = np.zeros(len(tious), np.bool_)
    is_free = np.ones(tious.shape[1], np.bool_)
    for i, line in enumerate(tious):
        open_tious = np.where(is_free, line, -1.0)
        best = int(open_tious.argmax()) if len(line) else -1
        if best >= 0 and open_tious[best] >= threshold:
            right[i], is_free[best] = True, False
    return right


def match_segments_avdeepfake1m(tious: Array, threshold: float) -> BoolArray:
    """Return a mask of the right segments, given segments in the order of the file.

    Each annotated segment in turn takes the first segment of the file, of any confidence, whose tIoU
    exceeds the threshold and that no earlier one took.
    """
    right = np.zeros(len(tious), np.bool_)
    for column in tious.T:
        free = np.flatnonzero((column > threshold) & ~right)
        right[free[:1]] = True
    return right


def count_kept_segments_activitynet(n_segments: Sequence[int], n_mean: int) -> IntArray:
    """Return the number of segments of each clip that count if `n_mean` per clip count on average.

    Each clip keeps the same fraction of its segments, the most confident ones. `n_segments` are the
    numbers of clips with an annotated segment.
    """
    counts = np.asarray(n_segments, np.int64)
    budget = float(_MOST_PER_CLIP * len(counts))
    if not counts.sum():
        return counts
    ratio = budget / counts.sum()
    kept: IntArray = np.minimum((counts * ratio).astype(np.int64), counts)
    if kept.sum():
        fraction = n_mean / 100.0 * (budget / kept.sum())
        kept = np.minimum((kept * fraction).astype(np.int64), kept)
    return kept


def compute_recall_activitynet(tious: Array, n_kept: int) -> Array:
    """Compute, for each annotated segment, the fraction of tIoU thresholds at which it is found.

    It is found if the tIoU of one of the first `n_kept` answered segments reaches the threshold.
    Answered segments are sorted by falling confidence.
    """
    return _compute_threshold_hit_rates(tious[:n_kept], strict=False)


def compute_recall_avdeepfake1m(tious: Array, n_kept: int) -> Array:
    """Compute, for each annotated segment, the fraction of tIoU thresholds at which it is found.

    It is found if the tIoU of one of the first `n_kept` answered segments exceeds the threshold.
    Answered segments are in the order of the file.
    """
    return _compute_threshold_hit_rates(tious[:n_kept], strict=True)


def _compute_threshold_hit_rates(tious: Array, *, strict: bool) -> Array:
    best = tious.max(axis=0, initial=0.0)[:, np.newaxis]
    thresholds = np.array(AVERAGED)
    hits: Array = (best > thresholds if strict else best >= thresholds).mean(axis=1)
    return hits
