"""Segments with known metrics, for the coverage of intervals of `locate`.

    python benchmarks/locate_cases.py     # the metrics of 20,000 clips, which are the truths below

Each scene has its own ease: in an easy one faults are found more often and more exactly.
"""

from collections.abc import Callable

import numpy as np

from unreel.core.box import Box
from unreel.core.clip import ClipId
from unreel.core.estimate import Measured
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Trace
from unreel.core.verdict import LocatedSegment, LocateVerdict
from unreel.protocols.locate.ground_truth import LocateTruth
from unreel.protocols.locate.metrics import ACTIVITYNET, THRESHOLDS
from unreel.protocols.locate.scorer import (
    build_average_precision_sample,
    compute_average_recalls,
    measure_mean_over_segments,
)
from unreel.protocols.locate.segment_comparison import (
    AllSegmentComparisons,
    compare_all_clip_segments,
)
from unreel.protocols.protocol import ScoredQuestion

POPULATION = 20_000
SKILLS = {"fair": 0.3, "good": 2.5}
TRUTHS = {
    ("ap", "fair"): 42.69,
    ("ap", "good"): 86.32,
    ("ar", "fair"): 40.70,
    ("ar", "good"): 84.29,
    ("viou", "fair"): 29.84,
    ("viou", "good"): 74.68,
}
"""Metrics of the population, in percent."""


def draw_clips(rng: np.random.Generator, k: int, skill: float) -> AllSegmentComparisons:
    """Return `k` clips of one scene each, with one to three marked segments and false alarms."""
    rows = []
    for place in range(k):
        ease = skill + rng.normal()
        marked = [
            _draw_trace(rng, rng.uniform(0, 100), rng.uniform(2, 10))
            for _ in range(rng.integers(1, 4))
        ]
        answered = [
            LocatedSegment(_blur(rng, trace, ease), float(1 / (1 + np.exp(-rng.normal(ease)))))
            for trace in marked
            if rng.random() < 1 / (1 + np.exp(-ease))
        ]
        answered += [
            LocatedSegment(_draw_trace(rng, rng.uniform(0, 100), 4.0), float(rng.random() ** 2))
            for _ in range(rng.poisson(0.7))
        ]
        rows.append(
            ScoredQuestion(
                subject=ClipId(f"{place}"),
                truth=LocateTruth(traces=tuple(marked)),
                outcome=LocateVerdict(segments=tuple(answered)),
            )
        )
    return compare_all_clip_segments(rows)


def _draw_trace(rng: np.random.Generator, start_s: float, length_s: float) -> Trace:
    x, y = rng.uniform(0, 0.6, size=2).tolist()
    return _build_trace(start_s, length_s, x, y)


def _build_trace(start_s: float, length_s: float, x: float, y: float) -> Trace:
    start = int(1e6 * start_s)
    span = TimeSpan(start, start + int(1e6 * length_s))
    return Trace(span=span, track=(BoxAt(start, Box(x, y, x + 0.3, y + 0.3)),))


def _blur(rng: np.random.Generator, trace: Trace, ease: float) -> Trace:
    reach = 1.5 / (1 + np.exp(ease))
    span, box = trace.span, trace.track[0].box
    start = max(0.0, span.start_us / 1e6 + reach * rng.normal())
    length = max(0.5, span.length_us / 1e6 + reach * rng.normal())
    x, y = (min(0.7, max(0.0, corner + 0.1 * reach * rng.normal())) for corner in (box.x0, box.y0))
    return _build_trace(start, length, x, y)


def measure_ap(clips: AllSegmentComparisons) -> Measured:
    sample = build_average_precision_sample(clips, ACTIVITYNET)
    return sample.measure([THRESHOLDS.index(0.5)], seed=0)


def measure_ar(clips: AllSegmentComparisons) -> Measured:
    recalls = compute_average_recalls(clips.located, ACTIVITYNET, 10)
    return measure_mean_over_segments(recalls, clips.located, seed=0)


def measure_viou(clips: AllSegmentComparisons) -> Measured:
    vious = [clip.best_vious() for clip in clips.located]
    return measure_mean_over_segments(vious, clips.located, seed=0)


METRICS: dict[str, Callable[[AllSegmentComparisons], Measured]] = {
    "ap": measure_ap,
    "ar": measure_ar,
    "viou": measure_viou,
}


def print_truths() -> None:
    for told, skill in SKILLS.items():
        clips = draw_clips(np.random.default_rng(7), POPULATION, skill)
        sample = build_average_precision_sample(clips, ACTIVITYNET)
        place = THRESHOLDS.index(0.5)
        values = {
            "ap": float(sample.build_statistic([place])(sample.sample.observed)[0]),
            "ar": np.concatenate(compute_average_recalls(clips.located, ACTIVITYNET, 10)).mean(),
            "viou": np.concatenate([clip.best_vious() for clip in clips.located]).mean(),
        }
        for name, value in values.items():
            print(f'    ("{name}", "{told}"): {100 * value:.2f},')


if __name__ == "__main__":
    print_truths()
