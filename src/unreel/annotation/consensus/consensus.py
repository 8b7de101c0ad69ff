"""Consensus of annotators: scores and votes by majority or weighted by accuracy, and the consensus of each task."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from unreel.annotation.campaign import AnnotationInterface
from unreel.annotation.consensus.outcome import (
    DISCARD,
    AnnotatorOpinion,
    CampaignConsensus,
    ConsensusMethod,
    ConsensusReview,
    ConsensusRule,
    Dissent,
    NoConsensusReason,
    Outcome,
    SettledTask,
    TaskSettlementMethod,
    apply_consensus_reviews,
    build_open_task,
    choose_consensus_text_author,
    get_categorical_answer,
    group_opinions_by_task,
)
from unreel.annotation.consensus.trace_consensus import merge_annotator_traces
from unreel.annotation.judgements import (
    AnyValue,
    PassFailAnswer,
    PreferenceAnswer,
    RatingAnswer,
    ScreeningAnswer,
    TraceAnswer,
    VoteAnswer,
)
from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Label, Rating
from unreel.stats.copied_answers import (
    FEWEST_PEOPLE,
    FEWEST_SHARED,
    MOST_PEOPLE,
    CopyingAnnotatorPair,
    find_copying_annotators,
)
from unreel.stats.dawid_skene import CrossFittedDawidSkene, cross_fit_dawid_skene
from unreel.stats.row_sample import IntArray


@dataclass(frozen=True, slots=True)
class ConsensusAnswer:
    """Consensus answer to one task, the method that found it, and its probability if known."""

    answer: str
    method: TaskSettlementMethod
    p_right: float | None = None


NoConsensus = tuple[NoConsensusReason, str]
"""Reason and detail of a task without a consensus answer."""
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
        return NoConsensusReason.TOO_FEW, detail
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
            return NoConsensusReason.NO_QUORUM, f"{votes}; the quorum is {rule.quorum}"
    return NoConsensusReason.TIE, votes


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
        answers = sorted({get_categorical_answer(opinion.value) for opinion in opinions})
        likely = ", ".join(f"{answer} {chances[answer]:.2f}" for answer in answers)
        unsure = (
            NoConsensusReason.UNSURE,
            f"likely by all answers: {likely}; {rule.sure:g} is not enough",
        )
        if self.weighs:
            best = max(answers, key=lambda answer: chances[answer])
            if chances[best] > rule.sure:
                return ConsensusAnswer(
                    best, TaskSettlementMethod.DAWID_SKENE, p_right=chances[best]
                )
            return unsure
        # Copied answers count once; after a tie, neither of the copying annotators counts.
        present = {opinion.annotator for opinion in opinions}
        pairs = [pair for pair in self.pairs if present.issuperset(pair)]
        doubles = {second for _, second in pairs}
        result = count([o for o in opinions if o.annotator not in doubles], rule)
        if pairs and isinstance(result, tuple) and result[0] is NoConsensusReason.TIE:
            copying = {name for pair in pairs for name in pair}
            independent = [o for o in opinions if o.annotator not in copying]
            result = count(independent, rule) if independent else result
        if isinstance(result, tuple):
            return result
        p_right = chances.get(result.answer)
        if p_right is not None and p_right < rule.sure - _ROUNDING:
            return unsure
        return replace(result, p_right=p_right)


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


_KINDS: Mapping[AnnotationInterface, type[AnyValue]] = {
    AnnotationInterface.SCREENING: ScreeningAnswer,
    AnnotationInterface.TRACE: TraceAnswer,
    AnnotationInterface.REALISM: RatingAnswer,
    AnnotationInterface.PREFERENCE: PreferenceAnswer,
    AnnotationInterface.REALITY: VoteAnswer,
    AnnotationInterface.PASS_FAIL: PassFailAnswer,
}


def compute_consensus(
    judgements: Sequence[AnnotatorOpinion],
    rule: ConsensusRule,
    *,
    interface: AnnotationInterface,
    reviews: Sequence[ConsensusReview] = (),
) -> CampaignConsensus:
    """Compute the consensus of each judged task of one campaign.

    The order of the judgements has no effect.

    Args:
        judgements: Judgements of all annotators.
        rule: Conditions of a consensus.
        interface: Question of the campaign.
        reviews: Reviews of the consensus, oldest first.
    """
    for opinion in judgements:
        if not isinstance(opinion.value, _KINDS[interface]):
            raise InvalidValueError(
                f"{opinion.annotator} answered {opinion.value} on a task of {interface.value}. Give "
                "judgements of one campaign"
            )
    tasks = group_opinions_by_task(judgements)
    weighing = (
        estimate_answer_probabilities(tasks) if rule.method is ConsensusMethod.DAWID_SKENE else None
    )
    count = (
        compute_majority_or_mean_score
        if interface is AnnotationInterface.REALISM
        else find_majority_answer
    )
    tally = partial(weighing.tally, count=count) if weighing else count
    result = CampaignConsensus(
        interface=interface,
        rule=rule,
        tasks={id_: _settle_task(opinions, rule, tally) for id_, opinions in tasks.items()},
        weights=weighing.weights if weighing else {},
        notes=weighing.notes if weighing else (),
    )
    return apply_consensus_reviews(result, tasks, reviews) if reviews or rule.reviews else result


def _settle_task(
    opinions: Sequence[AnnotatorOpinion], rule: ConsensusRule, tally: Tally
) -> Outcome:
    result: ConsensusAnswer | NoConsensus
    if len(opinions) < rule.min_overlap:
        detail = f"{len(opinions)} judged it, {rule.min_overlap} must"
        result = NoConsensusReason.TOO_FEW, detail
    else:
        result = tally(opinions, rule)
    if isinstance(result, tuple):
        return build_open_task(opinions, *result)
    if isinstance(opinions[0].value, TraceAnswer) and result.answer == Label.GENERATED.value:
        return _settle_trace_task(opinions, rule, result)
    agreeing = [o for o in opinions if get_categorical_answer(o.value) == result.answer]
    words_of = ""
    rated = ((o.annotator, o.value.rating) for o in opinions if isinstance(o.value, RatingAnswer))
    ratings = {who: rating for who, rating in rated if rating}
    if ratings and result.answer.isdigit():
        # The rationale comes from an annotator who gave this score; without one, closest to the mean.
        score = int(result.answer)
        same = {who: rating for who, rating in ratings.items() if rating.score == score}
        mean = Fraction(sum(rating.score for rating in ratings.values()), len(ratings))
        texts = [
            (who, f"{r.problem}\n{r.adherence}".strip()) for who, r in (same or ratings).items()
        ]
        words_of = choose_consensus_text_author(
            opinions[0].task.id, texts, distance=lambda who: float(abs(ratings[who].score - mean))
        )
        chosen = replace(ratings[words_of], score=score) if words_of else Rating(score=score)
        value: AnyValue = RatingAnswer(rating=chosen)
    else:
        value = agreeing[0].value
    return SettledTask(
        value=value,
        support=tuple(o.annotator for o in agreeing),
        dissent=_select_dissenting_opinions(opinions, result.answer),
        method=result.method,
        words_of=words_of,
        p_right=result.p_right,
    )


def _select_dissenting_opinions(
    opinions: Sequence[AnnotatorOpinion], answer: str
) -> tuple[Dissent, ...]:
    return tuple(
        (o.annotator, o.value) for o in opinions if get_categorical_answer(o.value) != answer
    )


def _settle_trace_task(
    opinions: Sequence[AnnotatorOpinion], rule: ConsensusRule, answer: ConsensusAnswer
) -> Outcome:
    """Return the outcome of a generated clip: traces with `rule.quorum` marks; the others are dissent."""
    traces = {o.annotator: o.value.traces for o in opinions if isinstance(o.value, TraceAnswer)}
    faults = merge_annotator_traces(opinions[0].task, traces, rule)
    n_marked = sum(map(bool, traces.values()))
    if n_marked >= rule.quorum and not faults.standing:
        detail = f"{n_marked} marked something, and nothing was marked by {rule.quorum}"
        return build_open_task(opinions, NoConsensusReason.NO_COMMON_FAULT, detail)
    support = sorted({who for fault in faults.standing for who in fault.marked_by})
    agreeing = [o.annotator for o in opinions if get_categorical_answer(o.value) == answer.answer]
    dissent: dict[str, AnyValue] = {}
    for who in dict.fromkeys(mark.annotator for mark in faults.lone):
        unshared = tuple(mark.trace for mark in faults.lone if mark.annotator == who)
        dissent[who] = TraceAnswer(traces=unshared, label=Label.GENERATED)
    dissent |= dict(_select_dissenting_opinions(opinions, answer.answer))
    return SettledTask(
        value=TraceAnswer(
            traces=tuple(fault.trace for fault in faults.standing), label=Label.GENERATED
        ),
        support=tuple(support or agreeing),
        dissent=tuple(sorted(dissent.items(), key=lambda item: item[0])),
        method=answer.method,
        words_of=faults.standing[0].words_of if len(faults.standing) == 1 else "",
        backing=tuple(fault.marked_by for fault in faults.standing),
        p_right=answer.p_right,
    )
