"""Lengths step: trims real segments so that their lengths match those of generated segments."""

import random
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from unreel.core.judgement import Label
from unreel.curation.recipe import LengthsRecipeSection
from unreel.curation.segment import ClipSegment, ExcludedSegment, filter_segments
from unreel.curation.segment_table import SegmentTable
from unreel.curation.state import CurationJob, CurationState
from unreel.curation.step_execution import Given, VersionedCurationStep
from unreel.engine.stage import Row

TOO_SHORT = -1
"""Placeholder for a missing target length: the clip is shorter than all that are left."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClipLengths:
    """Lengths of many clips in a compact form: the distinct lengths, and each clip's index among them."""

    lengths_s: Sequence[Fraction]
    own: NDArray[np.integer]
    names: NDArray[Any]


def draw_target_lengths(
    real_lengths: ClipLengths, wanted: NDArray[np.integer], *, seed: int
) -> NDArray[np.int64]:
    """Draw a target length for each real clip, so that their distribution matches `wanted`.

    `wanted` and the result are indices of `real_lengths.lengths_s`, or `TOO_SHORT`. With equal numbers of
    clips, the targets are exactly the wanted lengths; otherwise they are their quantiles. A target
    is assigned at random by `seed` among the clips that are long enough, so that as many clips as
    possible get one. The order of the clips does not matter.
    """
    by_rank = np.array(
        sorted(range(len(real_lengths.lengths_s)), key=real_lengths.lengths_s.__getitem__)
    )
    rank = np.empty_like(by_rank)
    rank[by_rank] = np.arange(len(by_rank))
    ranks = rank[real_lengths.own]
    by_length = np.lexsort((real_lengths.names, ranks))
    targets = _compute_quantiles(np.sort(rank[wanted]), len(ranks))
    enough = np.searchsorted(ranks[by_length], targets)
    draw = random.Random(seed)  # noqa: S311  a repeatable draw, no secret
    lengths = np.full(len(ranks), TOO_SHORT)
    free = array("q")
    above = len(ranks)
    # The longest target first: a clip that is long enough for it is long enough for all others, so each
    # choice leaves the largest possible number of clips for the rest.
    for index in reversed(range(len(targets))):
        if enough[index] < above:
            free.frombytes(by_length[enough[index] : above].astype(np.int64).tobytes())
            above = int(enough[index])
        if free:
            chosen = draw.randrange(len(free))
            free[chosen], free[-1] = free[-1], free[chosen]
            lengths[free.pop()] = by_rank[targets[index]]
    return lengths


def _compute_quantiles(ordered: NDArray[np.integer], n: int) -> NDArray[np.integer]:
    """Return `n` quantiles of the sorted values: the middle of each of `n` equal parts."""
    middles: NDArray[np.integer] = ordered[(2 * np.arange(n) + 1) * len(ordered) // (2 * n or 1)]
    return middles


LENGTHS = "lengths"
_STAYS = -2
"""Placeholder for the length of a generated clip, which is not changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentTargetLength:
    """Decision about a segment's length: `None` if it is unchanged or too short for any target length."""

    length_s: Fraction | None = None
    too_short: bool = False


def run_lengths_step(
    _section: LengthsRecipeSection, job: CurationJob, state: CurationState
) -> CurationState:
    """Trim real segments to the lengths of generated segments; exclude those that are too short."""
    seed = job.recipe.seed
    step = VersionedCurationStep(
        name=LENGTHS, version=1, settings={"seed": seed}, finds=TypeAdapter(SegmentTargetLength)
    )
    segments = state.segments
    subjects = segments.subjects(_build_length_step_input, ("id", "label", "length_s"))
    lengths = job.context.run_cached(
        step, subjects, lambda: _build_target_length_lookup(segments, seed=seed)
    )
    return state.after(
        job.directory.write(LENGTHS, filter_segments(LENGTHS, segments, lengths, _trim_segment))
    )


def _build_length_step_input(row: Row) -> Given:
    return {"piece": row["id"].hex(), "label": row["label"], "length_s": row["length_s"]}


def _build_target_length_lookup(
    segments: SegmentTable, *, seed: int
) -> Callable[[int], SegmentTargetLength]:
    real = segments.strings("label") == Label.REAL.value
    codes, spelled = segments.codes("length_s")
    lengths_s = [Fraction(text) for text in spelled.to_pylist()]
    if real.all() or not real.any():
        return lambda _: SegmentTargetLength()
    ids = segments.rows.digests("id")
    lasting = ClipLengths(lengths_s=lengths_s, own=codes[real], names=ids[real])
    targets = np.full(len(segments), _STAYS)
    targets[real] = draw_target_lengths(lasting, codes[~real], seed=seed)

    def lookup(index: int) -> SegmentTargetLength:
        if targets[index] == _STAYS:
            return SegmentTargetLength()
        too_short = bool(targets[index] == TOO_SHORT)
        return SegmentTargetLength(
            length_s=None if too_short else lengths_s[targets[index]], too_short=too_short
        )

    return lookup


def _trim_segment(
    segment: ClipSegment, length: SegmentTargetLength
) -> ClipSegment | ExcludedSegment:
    if length.too_short:
        detail = f"{float(segment.length_s):.2f} s; the shortest remaining length is longer"
        return segment.left_out(LENGTHS, "too-short", detail)
    if length.length_s is None:
        return segment
    shorter = length.length_s < segment.length_s
    cut = replace(segment.cut, length_s=length.length_s) if shorter else segment.cut
    return replace(segment, cut=cut, length_s=length.length_s)
