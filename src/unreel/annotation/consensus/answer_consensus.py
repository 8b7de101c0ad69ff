"""Consensus answer of one task: by majority, or weighted by each person's estimated accuracy."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from unreel.annotation.consensus.outcome import (
    ConsensusRule,
    NoConsensusReason,
    TaskSettlementMethod,
)
from unreel.annotation.opinion import DISCARD, AnnotatorOpinion, get_categorical_answer
from unreel.core.content_ids import digest
from unreel.stats.copied_answers import (
    FEWEST_PEOPLE,
    FEWEST_SHARED,
    MOST_PEOPLE,
    CopyingAnnotatorPair,
    find_copying_annotators,
)
from unreel.stats.dawid_skene import CrossFittedDawidSkene, cross_fit_dawid_skene
from unreel.stats.row_sample import IntArray


def choose_consensus_text_author(
    task: str, texts: Sequence[tuple[str, str]], *, distance: Callable[[str], float]
) -> str:
    """Return the annotator whose text becomes the text of the consensus; "" if no annotator wrote one.

    The annotator with the smallest `distance` is chosen. Ties are resolved by the most frequent
    text, then at random by the task's id, so that no annotator is preferred by name.
    """
    written = Counter(text for _, text in texts if text)
    ranked = sorted(
        (distance(annotator), -written[text], digest("words", task, annotator), annotator)
        for annotator, text in texts
        if text
    )
    return ranked[0][-1] if ranked else ""


@dataclass(frozen=True, slots=True)
class ConsensusAnswer:
    """Consensus answer to one task, the method that found it, and its probability if known."""

    answer: str
    method: TaskSettlementMethod
    p_right: float | None = None


@dataclass(frozen=True, slots=True)
class NoConsensus:
    """Reason why one task has no consensus answer."""

    why: NoConsensusReason
    detail: str


Tally = Callable[[Sequence[AnnotatorOpinion], ConsensusRule], ConsensusAnswer | NoConsensus]


def find_majority_answer(
    opinions: Sequence[AnnotatorOpinion], rule: ConsensusRule
) -> ConsensusAnswer | NoConsensus:
    """Return the answer of more than half of the annotators if they reach the quorum, else the reason."""
    return _compute_majority_answer(
        [get_categorical_answer(opinion.value) for opinion in opinions], rule
    )


def compute_majority_or_mean_score(
    opinions: Sequence[AnnotatorOpinion], rule: ConsensusRule
) -> ConsensusAnswer | NoConsensus:
    """Return the consensus score by VideoRealBench's rule: the majority score, else the rounded mean.

    The decision to discard the clip comes first. If more than half of the annotators discard it, it
    is discarded; if exactly half do, the task has no consensus; if fewer do, only the scores of the
    others count. A mean halfway between two scores is rounded to the even score, the only rule that
    is symmetric under reversal of the scale.
    """
    answers = [get_categorical_answer(opinion.value) for opinion in opinions]
    scores = [int(answer) for answer in answers if answer != DISCARD]
    if 2 * len(scores) <= len(answers):
        return _compute_majority_answer(answers, rule)
    if len(scores) < rule.min_overlap:
        detail = f"{len(scores)} of {len(answers)} gave a score, {rule.min_overlap} must"
        return NoConsensus(NoConsensusReason.TOO_FEW, detail)
    majority = _compute_majority_answer([str(score) for score in scores], rule)
    if isinstance(majority, ConsensusAnswer):
        return majority
    return ConsensusAnswer(
        str(round(Fraction(sum(scores), len(scores)))), TaskSettlementMethod.ROUNDED_MEAN
    )


def _compute_majority_answer(
    answers: Sequence[str], rule: ConsensusRule
) -> ConsensusAnswer | NoConsensus:
    counts = Counter(answers)
    votes = ", ".join(f"{counts[answer]} say {answer}" for answer in sorted(counts))
    for answer, count in counts.items():
        if 2 * count > len(answers):
            if count >= rule.quorum:
                return ConsensusAnswer(answer, TaskSettlementMethod.MAJORITY)
            return NoConsensus(NoConsensusReason.NO_QUORUM, f"{votes}; the quorum is {rule.quorum}")
    return NoConsensus(NoConsensusReason.TIE, votes)


_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class AnswerProbabilities:
    """Probability of each possible answer to each task, and the weight of each annotator."""

    chances: Mapping[str, Mapping[str, float]]
    """Probability of each answer, by task id and answer."""
    weights: Mapping[str, float]
    """Assumed accuracy of each annotator."""
    weighs: bool = False
    """Whether annotators are weighted by `weights`; otherwise majorities are used."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Pairs of annotators who copy each other's answers and count as one."""
    notes: tuple[str, ...] = ()
    """Sentences that explain the decisions about weights and pairs."""

    def tally(
        self, opinions: Sequence[AnnotatorOpinion], rule: ConsensusRule, *, count: Tally
    ) -> ConsensusAnswer | NoConsensus:
        """Return the consensus and its probability, or the reason for none; weighted: the most probable answer."""
        chances = self.chances[opinions[0].task.id]
        if not self.weighs:
            return self._count(opinions, rule, chances, count)
        answers = sorted({get_categorical_answer(opinion.value) for opinion in opinions})
        best = max(answers, key=lambda answer: chances[answer])
        if chances[best] > rule.sure:
            return ConsensusAnswer(best, TaskSettlementMethod.DAWID_SKENE, p_right=chances[best])
        return _build_unsure_result(answers, chances, rule)

    def _count(
        self,
        opinions: Sequence[AnnotatorOpinion],
        rule: ConsensusRule,
        chances: Mapping[str, float],
        count: Tally,
    ) -> ConsensusAnswer | NoConsensus:
        """Return the result of `count`, with copied answers counted once; recount without them after a tie."""
        present = {opinion.annotator for opinion in opinions}
        pairs = [pair for pair in self.pairs if present.issuperset(pair)]
        doubles = {second for _, second in pairs}
        result = count([o for o in opinions if o.annotator not in doubles], rule)
        if pairs and isinstance(result, NoConsensus) and result.why is NoConsensusReason.TIE:
            copying = {name for pair in pairs for name in pair}
            independent = [o for o in opinions if o.annotator not in copying]
            result = count(independent, rule) if independent else result
        if isinstance(result, NoConsensus):
            return result
        p_right = chances.get(result.answer)
        if p_right is not None and p_right < rule.sure - _ROUNDING:
            return _build_unsure_result(
                sorted({get_categorical_answer(o.value) for o in opinions}), chances, rule
            )
        return replace(result, p_right=p_right)


def _build_unsure_result(
    answers: Sequence[str], chances: Mapping[str, float], rule: ConsensusRule
) -> NoConsensus:
    likely = ", ".join(f"{answer} {chances[answer]:.2f}" for answer in answers)
    return NoConsensus(
        NoConsensusReason.UNSURE, f"likely by all answers: {likely}; {rule.sure:g} is not enough"
    )


def estimate_answer_probabilities(
    tasks: Mapping[str, Sequence[AnnotatorOpinion]],
) -> AnswerProbabilities:
    """Fit Dawid-Skene to all opinions and return the probability of each answer to each task.

    Two annotators who copy each other's answers count as one. The weights are used only if they
    predict held-out answers better than equal weights.
    """
    rows = [
        (opinion.annotator, i, get_categorical_answer(opinion.value))
        for i, opinions in enumerate(tasks.values())
        for opinion in opinions
    ]
    if not rows:
        return AnswerProbabilities({}, {})
    people, tasks_at, answers = (list(column) for column in zip(*rows, strict=True))
    names, who = np.unique(people, return_inverse=True)
    labels, chosen = np.unique(answers, return_inverse=True)
    what = np.array(tasks_at)
    copies = find_copying_annotators(who, what, chosen)
    mask = np.ones(len(who), dtype=bool)
    for pair in copies or ():
        mask &= ~((who == pair.second) & np.isin(what, what[who == pair.first]))
    skills = cross_fit_dawid_skene(
        who[mask], what[mask], chosen[mask], shape=(len(names), len(labels))
    )
    return AnswerProbabilities(
        chances={
            id_: dict(zip(labels.tolist(), line, strict=True))
            for id_, line in zip(tasks, skills.posterior.tolist(), strict=True)
        },
        weights=dict(zip(names.tolist(), skills.accuracy.tolist(), strict=True)),
        weighs=skills.weighs,
        pairs=tuple((str(names[p.first]), str(names[p.second])) for p in copies or ()),
        notes=tuple(_iter_weighting_notes(skills, copies, names.tolist(), what, labels.tolist())),
    )


def _iter_weighting_notes(
    fit: CrossFittedDawidSkene,
    pairs: Sequence[CopyingAnnotatorPair] | None,
    names: Sequence[str],
    what: IntArray,
    labels: Sequence[str],
) -> Iterator[str]:
    if not fit.converged:
        yield "Dawid-Skene did not converge: majorities are used, all annotators have equal weight"
    elif not fit.weighs:
        yield (
            f"weights do not predict held-out answers better than equal people over {len(np.unique(what))} tasks: "
            "majorities are used, all annotators have equal weight"
        )
    for pair in pairs or ():
        yield (
            f"{names[pair.first]} and {names[pair.second]} gave the same answer to {pair.n_same} of {pair.n_shared} tasks, "
            f"and their accuracy explains {pair.n_expected:.0f}: they count as one voice"
        )
    if pairs is None:
        yield (
            f"pairs that share their answers were not looked for: that needs {FEWEST_PEOPLE} to {MOST_PEOPLE} people, and {FEWEST_SHARED} tasks "
            f"that a pair judged; {len(names)} people judged"
        )
    proportions = zip(labels, fit.posterior.mean(axis=0).tolist(), strict=True)
    yield (
        "certainties hold for the shares of answers estimated here: "
        f"{', '.join(f'{label} {share:.0%}' for label, share in proportions)}"
    )
