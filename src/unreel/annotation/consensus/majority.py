"""Majority answer of one task."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from unreel.annotation.consensus.outcome import ConsensusRule, OpenReason, SettlementMethod
from unreel.annotation.opinion import DISCARD, AnnotatorOpinion, answer_of
from unreel.core.identity import digest


def choose_words(
    task: str,
    texts: Sequence[tuple[str, str]],
    *,
    distance: Callable[[str], float],
) -> str:
    """Return the text of the closest annotator in `texts`; "" if there is no text.

    Among equally close ones the most frequent text is chosen; then a random one by the task's id,
    so that no annotator is preferred by name.
    """
    written = Counter(text for _, text in texts if text)
    ranked = sorted(
        (distance(annotator), -written[text], digest("words", task, annotator), annotator)
        for annotator, text in texts
        if text
    )
    return ranked[0][-1] if ranked else ""


@dataclass(frozen=True, slots=True)
class MajorityAnswer:
    """Answer of the majority."""

    answer: str
    method: SettlementMethod
    p_right: float | None = None


@dataclass(frozen=True, slots=True)
class NoMajority:
    """Result without a majority."""

    why: OpenReason
    detail: str


Tally = Callable[[Sequence[AnnotatorOpinion], ConsensusRule], MajorityAnswer | NoMajority]


def find_majority(
    opinions: Sequence[AnnotatorOpinion], rule: ConsensusRule
) -> MajorityAnswer | NoMajority:
    """Return the answer of more than half of the people if their number reaches the quorum."""
    return _compute_majority_answer([answer_of(opinion.value) for opinion in opinions], rule)


def compute_majority_or_mean(
    opinions: Sequence[AnnotatorOpinion], rule: ConsensusRule
) -> MajorityAnswer | NoMajority:
    """Return VideoRealBench's score: that of the majority, otherwise the rounded mean.

    Discarding is decided first: more than half discards the clip, exactly half leaves it open, and
    fewer dissent while the others' scores count. A mean of exactly one half is rounded to the even
    score: the only rule that is symmetric under reversal of the scale.
    """
    answers = [answer_of(opinion.value) for opinion in opinions]
    scores = [int(answer) for answer in answers if answer != DISCARD]
    if 2 * len(scores) <= len(answers):
        return _compute_majority_answer(answers, rule)
    if len(scores) < rule.min_overlap:
        detail = f"{len(scores)} of {len(answers)} gave a score, {rule.min_overlap} must"
        return NoMajority(OpenReason.TOO_FEW, detail)
    found = _compute_majority_answer([str(score) for score in scores], rule)
    if isinstance(found, MajorityAnswer):
        return found
    return MajorityAnswer(
        str(round(Fraction(sum(scores), len(scores)))), SettlementMethod.ROUNDED_MEAN
    )


def _compute_majority_answer(
    answers: Sequence[str], rule: ConsensusRule
) -> MajorityAnswer | NoMajority:
    counts = Counter(answers)
    told = ", ".join(f"{counts[answer]} say {answer}" for answer in sorted(counts))
    for answer, count in counts.items():
        if 2 * count > len(answers):
            if count >= rule.quorum:
                return MajorityAnswer(answer, SettlementMethod.MAJORITY)
            return NoMajority(OpenReason.NO_QUORUM, f"{told}; the quorum is {rule.quorum}")
    return NoMajority(OpenReason.TIE, told)
