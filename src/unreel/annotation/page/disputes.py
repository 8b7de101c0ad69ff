"""Disagreements of annotators, worst first."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Final

from unreel.annotation.campaign import AnnotationTask, ClipCopy
from unreel.annotation.consensus.outcome import Outcome, SettledTask
from unreel.annotation.judgements import AnyValue, RatingAnswer, TraceAnswer
from unreel.annotation.opinion import AnnotatorOpinion, answer_of, by_task
from unreel.annotation.publishing.edition import CampaignEdition
from unreel.annotation.tubes import likeness

_SCALE: Final = 4
"""From the lowest score to the highest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDispute:
    """A task with what everybody said of it."""

    task: AnnotationTask
    said: tuple[AnnotatorOpinion, ...]
    """By name."""
    outcome: Outcome
    distance: float
    """How far apart people are, 0 to 1."""

    @property
    def is_settled(self) -> bool:
        """Return whether there is a consensus."""
        return isinstance(self.outcome, SettledTask)

    @property
    def name(self) -> str:
        """Of its clip, or of both."""
        return " | ".join(self.task.names)


def rank_disputes(edition: CampaignEdition) -> list[TaskDispute]:
    """Every task that was judged: those that are not settled first, then by how far apart people are."""
    found = [
        TaskDispute(
            task=said[0].task,
            said=tuple(said),
            outcome=edition.consensus.tasks[id_],
            distance=distance([each.value for each in said], said[0].task.copies[0]),
        )
        for id_, said in by_task(edition.opinions).items()
    ]
    return sorted(found, key=lambda one: (one.is_settled, -one.distance, one.task.names))


def distance(values: Sequence[AnyValue], copy: ClipCopy) -> float:
    """Return the disagreement of the judgements: 0 if all agree, 1 if they have nothing in common.

    Answers: the fraction of people who do not give the most common one. Scores: the range. Traces:
    as answers, or the missing overlap of all marks, whichever is larger.
    """
    apart = _answers_apart(values)
    scores = [
        v.rating.score for v in values if isinstance(v, RatingAnswer) and v.rating is not None
    ]
    if len(scores) == len(values) > 0:
        return (max(scores) - min(scores)) / _SCALE
    marked = [v for v in values if isinstance(v, TraceAnswer)]
    pairs = [1 - _alike(one, other, copy) for one, other in combinations(marked, 2)]
    return max([apart, fmean(pairs)]) if pairs else apart


def _answers_apart(values: Sequence[AnyValue]) -> float:
    tally = Counter(map(answer_of, values))
    return 1 - tally.most_common(1)[0][1] / len(values) if values else 0.0


def _alike(one: TraceAnswer, other: TraceAnswer, copy: ClipCopy) -> float:
    """Mean over both people's traces of how well the other has each; 1 where neither marked any."""
    best = [
        max((likeness(mine, theirs, copy) for theirs in there.traces), default=0.0)
        for here, there in ((one, other), (other, one))
        for mine in here.traces
    ]
    return fmean(best) if best else 1.0
