"""Qualification of annotators: answers to known clips, and VideoRealBench's unanimity rule."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from unreel.annotation.agreement import beyond_chance
from unreel.annotation.campaign import AnnotationInterface
from unreel.annotation.opinion import AnnotatorOpinion, by_task
from unreel.annotation.quality.gold import on_gold, share_right
from unreel.core.estimate import Estimate, Measured

UNANIMOUS: Final = 0.9
"""VideoRealBench: three annotators agree unanimously on at least 90 % ..."""
UNANIMOUS_CLIPS: Final = 100
"""... of 100 clips."""
PASSING: Final = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class QualificationResult:
    """Results of people on the qualification clips."""

    right: Mapping[str, Measured]
    """By annotator, the share of right answers to known clips."""
    qualified: tuple[str, ...]
    """Those whose share is at least the passing one."""
    unanimity: Measured
    n_shared: int
    """Clips that all of them judged."""
    unanimous: bool
    """Whether they agree unanimously on 90 % of at least 100 clips that all of them judged."""
    beyond_chance: Mapping[str, Measured]
    """Alpha and kappa: unanimity alone is high wherever one answer is common."""


def qualify(
    opinions: Sequence[AnnotatorOpinion],
    *,
    interface: AnnotationInterface,
    passing: float = PASSING,
    seed: int,
) -> QualificationResult:
    """Return who may take part, by known answers and by agreement on the clips that all judged."""
    right = share_right(on_gold(opinions), seed=seed)
    people = {opinion.annotator for opinion in opinions}
    shared = [
        opinion
        for those in by_task(opinions).values()
        if {each.annotator for each in those} == people
        for opinion in those
    ]
    agreed = beyond_chance(shared, interface, seed=seed)
    unanimity = agreed["unanimity"]
    n_shared = len(shared) // max(1, len(people))
    return QualificationResult(
        right=right,
        qualified=tuple(
            who for who, m in right.items() if isinstance(m, Estimate) and m.value >= passing
        ),
        unanimity=unanimity,
        n_shared=n_shared,
        unanimous=isinstance(unanimity, Estimate)
        and unanimity.value >= UNANIMOUS
        and n_shared >= UNANIMOUS_CLIPS,
        beyond_chance={name: m for name, m in agreed.items() if "alpha" in name or "kappa" in name},
    )
