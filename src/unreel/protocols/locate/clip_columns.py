"""Answered and marked segments of clips, compared once for all metrics."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from unreel.core.estimate import RowCluster
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.span import MICROSECONDS
from unreel.core.trace import Trace
from unreel.core.verdict import LocatedSegment, LocateVerdict, Unparsed
from unreel.protocols.locate.conventions import ClipOverlaps, rank_segments
from unreel.protocols.locate.overlap import compute_tious, compute_viou, is_pointing_hit
from unreel.protocols.locate.truth import LocateTruth
from unreel.protocols.protocol import ScoredQuestion
from unreel.stats.sample import Array

LocateRow = ScoredQuestion[LocateTruth, LocateVerdict]
PAIRED: Final = 0.5
"""tIoU from which an answered and a marked segment are a pair, for F1 scores."""


@dataclass(frozen=True, slots=True, eq=False)
class ComparedClip:
    """One answered clip. An unreadable answer has no segments."""

    cluster: RowCluster
    truth: LocateTruth
    answered: tuple[LocatedSegment, ...]
    is_readable: bool
    overlaps: ClipOverlaps
    """In the order of the answer; a missing confidence is NaN."""
    ranked: ClipOverlaps
    """By falling confidence; if one is missing, in the order of the answer."""

    @classmethod
    def of(cls, row: LocateRow) -> "ComparedClip | None":
        """Compare the segments of a row; `None` if the question failed."""
        if isinstance(row.outcome, Failure):
            return None
        segments = row.outcome.segments
        answered = () if isinstance(segments, Unparsed) else segments
        confidences = [np.nan if s.confidence is None else s.confidence for s in answered]
        tious = compute_tious([segment.trace for segment in answered], row.truth.traces)
        overlaps = ranked = ClipOverlaps(np.array(confidences, np.float64), tious)
        if not np.isnan(overlaps.confidences).any():
            spans = [segment.trace.span for segment in answered]
            starts, ends = [span.start_us for span in spans], [span.end_us for span in spans]
            ranked = rank_segments(overlaps, starts, ends)
        is_readable = not isinstance(segments, Unparsed)
        return cls(row.cluster, row.truth, answered, is_readable, overlaps, ranked)

    def pairs(self) -> Iterator[tuple[Trace, Trace]]:
        """Yield one-to-one pairs of an answered and a marked trace, by falling tIoU from `PAIRED` on."""
        tious = self.overlaps.tious.copy()
        while tious.size and tious.max() >= PAIRED:
            one, other = np.unravel_index(int(tious.argmax()), tious.shape)
            yield self.answered[one].trace, self.truth.traces[other]
            tious[one, :] = tious[:, other] = -1.0

    def best_vious(self) -> Array:
        """Return for each marked trace with boxes the highest vIoU of an answered one."""
        return np.array(
            [
                max((compute_viou(segment.trace, marked) for segment in self.answered), default=0.0)
                for marked in self.truth.traces
                if marked.track
            ]
        )

    def nearest(self) -> list[Trace | None]:
        """Return for each marked trace the answered one of highest tIoU; `None` if none overlaps."""
        columns = self.overlaps.tious.T
        best = [int(column.argmax()) if column.any() else None for column in columns]
        return [None if place is None else self.answered[place].trace for place in best]

    def pointing_hits(self) -> Array:
        """Return for each marked trace with boxes whether the nearest answered one points at it."""
        pairs = zip(self.nearest(), self.truth.traces, strict=True)
        return np.array(
            [near is not None and is_pointing_hit(near, m) for near, m in pairs if m.track],
            np.float64,
        )

    def onset_errors_s(self) -> Array:
        """Return the distance of the onsets, in seconds, for each marked trace that an answered one overlaps."""
        pairs = zip(self.nearest(), self.truth.traces, strict=True)
        return np.array(
            [
                abs(n.span.start_us - m.span.start_us) / MICROSECONDS
                for n, m in pairs
                if n is not None
            ]
        )


@dataclass(frozen=True, slots=True, eq=False)
class ComparedClips:
    """All answered clips, and counts of the others."""

    clips: tuple[ComparedClip, ...]
    n_questions: int
    failures: Mapping[str, int]
    unparsed: Mapping[str, int]

    @property
    def located(self) -> tuple[ComparedClip, ...]:
        """Return the clips with a marked segment."""
        return tuple(clip for clip in self.clips if clip.truth.label is Label.GENERATED)

    @property
    def clean(self) -> tuple[ComparedClip, ...]:
        """Return the clips without a marked segment."""
        return tuple(clip for clip in self.clips if clip.truth.label is Label.REAL)


def compare_rows(rows: Sequence[LocateRow]) -> ComparedClips:
    """Compare the segments of all rows."""
    failures: Counter[str] = Counter()
    unparsed: Counter[str] = Counter()
    clips: list[ComparedClip] = []
    for row in rows:
        clip = ComparedClip.of(row)
        if clip is not None:
            clips.append(clip)
        if isinstance(row.outcome, Failure):
            failures[row.outcome.reason.value] += 1
        elif isinstance(row.outcome.segments, Unparsed):
            unparsed[f"segments: {row.outcome.segments.reason.value}"] += 1
    return ComparedClips(
        tuple(clips), len(rows), dict(sorted(failures.items())), dict(sorted(unparsed.items()))
    )
