"""Majority answer of one task."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from unreel.annotate.consensus.outcome import Open, Way
from unreel.annotate.consensus.rule import Rule
from unreel.annotate.opinion import DISCARD, Opinion, answer_of


@dataclass(frozen=True, slots=True)
class Leading:
    """The answer that stands."""

    answer: str
    method: Way
    p_right: float | None = None


@dataclass(frozen=True, slots=True)
class Unclear:
    """No answer stands."""

    why: Open
    detail: str


Tally = Callable[[Sequence[Opinion], Rule], Leading | Unclear]


def majority(opinions: Sequence[Opinion], rule: Rule) -> Leading | Unclear:
    """The answer of more than half of the people, if they are a quorum."""
    return _majority([answer_of(opinion.value) for opinion in opinions], rule)


def majority_or_mean(opinions: Sequence[Opinion], rule: Rule) -> Leading | Unclear:
    """VideoRealBench's score: that of the majority, else the rounded mean.

    Whether to discard the clip comes first: so say more than half, and it is; so says half, and nobody
    can tell; so say fewer, and they dissent while the others' scores count. A mean of exactly one half
    goes to the even score: that is the one rule under which 1..5 read backwards gives the same clips.
    """
    answers = [answer_of(opinion.value) for opinion in opinions]
    scores = [int(answer) for answer in answers if answer != DISCARD]
    if 2 * len(scores) <= len(answers):
        return _majority(answers, rule)
    if len(scores) < rule.min_overlap:
        detail = f"{len(scores)} of {len(answers)} gave a score, {rule.min_overlap} must"
        return Unclear(Open.TOO_FEW, detail)
    found = _majority([str(score) for score in scores], rule)
    if isinstance(found, Leading):
        return found
    return Leading(str(round(Fraction(sum(scores), len(scores)))), Way.ROUNDED_MEAN)


def _majority(answers: Sequence[str], rule: Rule) -> Leading | Unclear:
    counts = Counter(answers)
    told = ", ".join(f"{counts[answer]} say {answer}" for answer in sorted(counts))
    for answer, count in counts.items():
        if 2 * count > len(answers):
            if count >= rule.quorum:
                return Leading(answer, Way.MAJORITY)
            return Unclear(Open.NO_QUORUM, f"{told}; the quorum is {rule.quorum}")
    return Unclear(Open.TIE, told)
