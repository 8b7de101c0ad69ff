"""Alarms for annotators whose answers changed over time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from unreel.annotation.opinion import AnnotatorOpinion, answer_of
from unreel.annotation.quality.qualification import score_known_answers
from unreel.stats.sample import Array

ALARM: Final = 0.01
"""Probability of a false alarm for each of the two statistics."""
FEWEST: Final = 20
"""Answers without which nothing is said."""
_SHUFFLES: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDrift:
    """Difference between a person's early and late answers, with the latest possible start of the change."""

    what: str
    p_chance: float
    """Share of random orders of the same answers in which a change as large is seen."""
    since: int
    """Number of answers before the largest change."""
    n: int
    before: float
    after: float

    @property
    def alarm(self) -> bool:
        """Return whether chance is an unlikely explanation."""
        return self.p_chance <= ALARM


def find_drift(
    opinions: Sequence[AnnotatorOpinion], *, seed: int
) -> Mapping[str, tuple[AnswerDrift, ...]]:
    """Return, by annotator with enough answers, the drift of accuracy on known clips and of answers.

    Answers are summarised by the fraction of the person's most common answer, or the mean score.
    """
    by_person: dict[str, list[AnnotatorOpinion]] = {}
    for opinion in sorted(opinions, key=lambda each: (each.submitted_us, each.task.id)):
        by_person.setdefault(opinion.annotator, []).append(opinion)
    found = {}
    for who, theirs in sorted(by_person.items()):
        rights = np.array([right.share for right in score_known_answers(theirs)])
        answers = _convert_answers_to_numbers([answer_of(each.value) for each in theirs])
        seen = (("right", rights), ("answers", answers))
        found[who] = tuple(
            _measure_drift(what, values, seed=seed)
            for what, values in seen
            if len(values) >= FEWEST
        )
    return found


def _convert_answers_to_numbers(answers: Sequence[str]) -> Array:
    if all(answer.isdigit() for answer in answers):
        return np.array([float(answer) for answer in answers])
    common = max(sorted(set(answers)), key=answers.count)
    return np.array([float(answer == common) for answer in answers])


def _measure_drift(what: str, values: Array, *, seed: int) -> AnswerDrift:
    """Find the largest change between earlier and later answers, and its p-value under shuffling."""
    rng = np.random.default_rng(seed)
    heights, since = _compute_largest_shifts(values[np.newaxis])
    shuffled = rng.permuted(np.tile(values, (_SHUFFLES, 1)), axis=1)
    chance, _ = _compute_largest_shifts(shuffled)
    # The order that was seen is one of the possible ones.
    p_chance = (1 + int((chance >= heights[0] - 1e-12).sum())) / (1 + _SHUFFLES)
    at = int(since[0])
    return AnswerDrift(
        what=what,
        p_chance=p_chance,
        since=at,
        n=len(values),
        before=float(values[:at].mean()),
        after=float(values[at:].mean()),
    )


def _compute_largest_shifts(orders: Array) -> tuple[Array, Array]:
    """Return, for each row, the largest scaled difference of means and the number of values before it.

    The difference is in standard errors, up to a factor that all orders of the values share.
    """
    n = orders.shape[1]
    least = max(5, n // 20)
    before = np.arange(least, n - least + 1)
    sums = np.cumsum(orders, axis=1)
    total = sums[:, -1:]
    ahead = sums[:, before - 1] / before
    behind = (total - sums[:, before - 1]) / (n - before)
    heights = np.abs(ahead - behind) * np.sqrt(before * (n - before) / n)
    best = heights.argmax(axis=1)
    return heights.max(axis=1), before[best]
