"""Metrics of `locate` once more, in plain Python from their definitions: slow, and independent of `unreel.protocols`."""

import itertools
import random
from dataclasses import dataclass

from unreel.core.box import Box
from unreel.core.clip import ClipId
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace
from unreel.core.verdict import LocatedSegment, LocateVerdict
from unreel.protocols.locate.ground_truth import LocateTruth
from unreel.protocols.protocol import ScoredQuestion

AVERAGED = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
ALL = (0.3, 0.35, 0.4, 0.45, *AVERAGED)
CLIP_S = 20


@dataclass
class Clip:
    """Marked segments (start, end), and answered ones (confidence, start, end) in the order of the file."""

    marked: list[tuple[int, int]]
    answered: list[tuple[float, int, int]]


def draw_clips(seed: int, n_clips: int = 5, *, empty: bool = True) -> list[Clip]:
    """Clips on a grid of seconds, so that overlaps are often exactly at a threshold."""
    rng = random.Random(seed)

    def draw() -> tuple[int, int]:
        start = rng.randrange(CLIP_S - 1)
        return start, rng.randint(start + 1, CLIP_S)

    clips = []
    for place in range(n_clips):
        marked = [draw() for _ in range(rng.randint(0 if place else 1, 3))]
        answered = [draw() for _ in range(rng.randint(0 if empty else 1, 4))]
        answered += [
            (max(0, start + rng.randint(-1, 0)), end + rng.randint(0, 1))
            for start, end in marked
            if rng.random() < 0.6
        ]
        rng.shuffle(answered)
        clips.append(Clip(marked, [(rng.random(), *span) for span in answered]))
    return clips


def build_rows(clips: list[Clip]) -> list[ScoredQuestion]:
    """The same clips as rows that a scorer takes."""

    def build(start: int, end: int) -> Trace:
        return Trace(span=TimeSpan(start * 10**6, end * 10**6))

    return [
        ScoredQuestion(
            subject=ClipId(f"{place}"),
            truth=LocateTruth(
                traces=tuple(build(*span) for span in clip.marked), duration_us=CLIP_S * 10**6
            ),
            outcome=LocateVerdict(
                segments=tuple(LocatedSegment(build(s, e), sure) for sure, s, e in clip.answered)
            ),
        )
        for place, clip in enumerate(clips)
    ]


def tiou(one: tuple[int, int], other: tuple[int, int]) -> float:
    shared = max(0, min(one[1], other[1]) - max(one[0], other[0]))
    return shared / (one[1] - one[0] + other[1] - other[0] - shared)


def activitynet_ap(clips: list[Clip], threshold: float) -> float:
    """All segments by falling confidence; each takes the best marked segment that is left."""
    ranked = sorted(
        ((sure, place, (s, e)) for place, clip in enumerate(clips) for sure, s, e in clip.answered),
        reverse=True,
    )
    taken: set[tuple[int, int]] = set()
    hits: list[bool] = []
    for _, place, span in ranked:
        order = sorted(
            range(len(clips[place].marked)), key=lambda m: -tiou(span, clips[place].marked[m])
        )
        hit = None
        for marked in order:
            if tiou(span, clips[place].marked[marked]) < threshold:
                break
            if (place, marked) not in taken:
                hit = marked
                break
        hits.append(hit is not None)
        if hit is not None:
            taken.add((place, hit))
    n = sum(len(clip.marked) for clip in clips)
    precisions = [sum(hits[: k + 1]) / (k + 1) for k in range(len(hits))]
    # Every hit adds 1 / n of recall, at the best precision from there on.
    return sum(max(precisions[k:]) / n for k, hit in enumerate(hits) if hit)


def activitynet_ar(clips: list[Clip], n_mean: int) -> float:
    """Recall over ten thresholds; each clip keeps the same fraction of its segments, the surest first."""
    marked_clips = [clip for clip in clips if clip.marked]
    total = sum(len(clip.answered) for clip in marked_clips)
    if not total:
        return 0.0
    ratio = 100.0 * len(marked_clips) / total
    kept = [min(int(len(clip.answered) * ratio), len(clip.answered)) for clip in marked_clips]
    share = n_mean / 100.0 * (100.0 * len(marked_clips) / sum(kept))
    recalls = []
    for threshold in AVERAGED:
        met = 0
        for clip, most in zip(marked_clips, kept, strict=True):
            first = sorted(clip.answered, reverse=True)[: min(int(most * share), most)]
            met += sum(any(tiou((s, e), m) >= threshold for _, s, e in first) for m in clip.marked)
        recalls.append(met / sum(len(clip.marked) for clip in marked_clips))
    return sum(recalls) / len(recalls)


def avdeepfake1m_ap(clips: list[Clip], threshold: float) -> float:
    """Each marked segment takes the first answered one of the file above the threshold; no curve before the first point."""
    rows: list[tuple[float, bool]] = []
    for clip in clips:
        right: set[int] = set()
        for marked in clip.marked:
            for place, (_, s, e) in enumerate(clip.answered):
                if place not in right and tiou((s, e), marked) > threshold:
                    right.add(place)
                    break
        rows += [(sure, place in right) for place, (sure, _, _) in enumerate(clip.answered)]
    rows.sort(key=lambda row: -row[0])
    n = sum(len(clip.marked) for clip in clips)
    hits = [hit for _, hit in rows]
    precisions = [sum(hits[: k + 1]) / (k + 1) for k in range(len(hits))]
    return sum(max(precisions[k:]) / n for k, hit in enumerate(hits) if hit and k)


def avdeepfake1m_ar(clips: list[Clip], n: int) -> float:
    """Recall over ten thresholds by the first `n` segments of each clip in the file."""
    recalls = []
    for threshold in AVERAGED:
        met = sum(
            any(tiou((s, e), marked) > threshold for _, s, e in clip.answered[:n])
            for clip in clips
            for marked in clip.marked
        )
        recalls.append(met / sum(len(clip.marked) for clip in clips))
    return sum(recalls) / len(recalls)


def best_tious(clips: list[Clip]) -> list[float]:
    return [
        max((tiou((s, e), marked) for _, s, e in clip.answered), default=0.0)
        for clip in clips
        for marked in clip.marked
    ]


def draw_tube(rng: random.Random) -> Trace:
    start = rng.randrange(10**6)
    end = start + rng.randrange(10**5, 10**6)
    instants = sorted({start, *(rng.randrange(start, end) for _ in range(rng.randint(0, 3)))})
    track = []
    for at in instants:
        x, y = rng.random() * 0.5, rng.random() * 0.5
        track.append(BoxAt(at, Box(x, y, x + 0.1 + rng.random() * 0.4, y + 0.4)))
    return Trace(
        span=TimeSpan(start, end),
        track=tuple(track),
        categories=frozenset({rng.choice([Category.OTHER, Category.OBJECT_MERGING])}),
    )


def viou(one: Trace, other: Trace) -> float:
    """Mean box IoU over 100 instants of the shared time, times shared time by joint time."""
    start = max(one.span.start_us, other.span.start_us)
    shared = min(one.span.end_us, other.span.end_us) - start
    if shared <= 0:
        return 0.0
    total = 0.0
    for k in range(100):
        at = start + (k + 0.5) * shared / 100
        total += box_iou(box_at(one, at), box_at(other, at))
    joint = one.span.length_us + other.span.length_us - shared
    return total / 100 * shared / joint


Corners = list[float]


def box_at(trace: Trace, at: float) -> Corners:
    marks = [(m.at_us, [m.box.x0, m.box.y0, m.box.x1, m.box.y1]) for m in trace.track]
    if at <= marks[0][0]:
        return marks[0][1]
    for (before, low), (after, high) in itertools.pairwise(marks):
        if before <= at <= after:
            part = (at - before) / (after - before)
            return [a + part * (b - a) for a, b in zip(low, high, strict=True)]
    return marks[-1][1]


def box_iou(a: Corners, b: Corners) -> float:
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    areas = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1])
    return width * height / (areas - width * height)
