"""Computation of the consensus from all judgements of a campaign."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial

from unreel.annotation.campaign import AnnotationInterface
from unreel.annotation.consensus.answer_consensus import (
    ConsensusAnswer,
    NoConsensus,
    Tally,
    choose_consensus_text_author,
    compute_majority_or_mean_score,
    estimate_answer_probabilities,
    find_majority_answer,
)
from unreel.annotation.consensus.outcome import (
    CampaignConsensus,
    ConsensusMethod,
    ConsensusRule,
    Dissent,
    NoConsensusReason,
    OpenTask,
    Outcome,
    SettledTask,
)
from unreel.annotation.consensus.review import ConsensusReview, apply_consensus_reviews
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
from unreel.annotation.opinion import (
    AnnotatorOpinion,
    get_categorical_answer,
    group_opinions_by_task,
)
from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Label, Rating

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
    if len(opinions) < rule.min_overlap:
        detail = f"{len(opinions)} judged it, {rule.min_overlap} must"
        return _build_open_task(opinions, NoConsensus(NoConsensusReason.TOO_FEW, detail))
    result = tally(opinions, rule)
    if isinstance(result, NoConsensus):
        return _build_open_task(opinions, result)
    if isinstance(opinions[0].value, TraceAnswer) and result.answer == Label.GENERATED.value:
        return _settle_trace_task(opinions, rule, result)
    support = [o for o in opinions if get_categorical_answer(o.value) == result.answer]
    ratings = {o.annotator: o.value.rating for o in opinions if isinstance(o.value, RatingAnswer)}
    if any(ratings.values()) and result.answer.isdigit():
        scored = {who: rating for who, rating in ratings.items() if rating}
        rated, words_of = _build_consensus_rating(opinions[0].task.id, int(result.answer), scored)
        value: AnyValue = rated
    else:
        value, words_of = support[0].value, ""
    return SettledTask(
        value=value,
        support=tuple(o.annotator for o in support),
        dissent=_select_dissenting_opinions(opinions, result.answer),
        method=result.method,
        words_of=words_of,
        p_right=result.p_right,
    )


def _build_open_task(opinions: Sequence[AnnotatorOpinion], no_consensus: NoConsensus) -> OpenTask:
    answers = tuple((opinion.annotator, opinion.value) for opinion in opinions)
    return OpenTask(why=no_consensus.why, detail=no_consensus.detail, judgements=answers)


def _select_dissenting_opinions(
    opinions: Sequence[AnnotatorOpinion], answer: str
) -> tuple[Dissent, ...]:
    return tuple(
        (o.annotator, o.value) for o in opinions if get_categorical_answer(o.value) != answer
    )


def _build_consensus_rating(
    task: str, score: int, ratings: Mapping[str, Rating]
) -> tuple[RatingAnswer, str]:
    """Return the consensus score with one annotator's rationale, and the name of that annotator.

    The rationale comes from an annotator who gave this score. If no annotator gave it, it comes from
    the annotator whose score is closest to the mean. The name is "" if there is no rationale.
    """
    same = {who: rating for who, rating in ratings.items() if rating.score == score}
    mean = Fraction(sum(rating.score for rating in ratings.values()), len(ratings))
    # Prefer annotators who gave exactly this score; if there are none, the one closest to the mean.
    texts = [(who, f"{r.problem}\n{r.adherence}".strip()) for who, r in (same or ratings).items()]
    words_of = choose_consensus_text_author(
        task, texts, distance=lambda who: float(abs(ratings[who].score - mean))
    )
    if not words_of:
        return RatingAnswer(rating=Rating(score=score)), ""
    chosen = ratings[words_of]
    rating = Rating(
        score=score, problem=chosen.problem, adherence=chosen.adherence, family=chosen.family
    )
    return RatingAnswer(rating=rating), words_of


def _settle_trace_task(
    opinions: Sequence[AnnotatorOpinion], rule: ConsensusRule, answer: ConsensusAnswer
) -> Outcome:
    """Return the outcome of a generated clip: traces with `rule.quorum` marks; the others are dissent."""
    traces = {o.annotator: o.value.traces for o in opinions if isinstance(o.value, TraceAnswer)}
    faults = merge_annotator_traces(opinions[0].task, traces, rule)
    n_marked = sum(map(bool, traces.values()))
    if n_marked >= rule.quorum and not faults.standing:
        detail = f"{n_marked} marked something, and nothing was marked by {rule.quorum}"
        return _build_open_task(opinions, NoConsensus(NoConsensusReason.NO_COMMON_FAULT, detail))
    support = sorted({who for fault in faults.standing for who in fault.marked_by})
    agreeing = [o.annotator for o in opinions if get_categorical_answer(o.value) == answer.answer]
    unshared = {
        mark.annotator: tuple(m.trace for m in faults.lone if m.annotator == mark.annotator)
        for mark in faults.lone
    }
    dissent = {
        **{who: TraceAnswer(traces=left, label=Label.GENERATED) for who, left in unshared.items()},
        **dict(_select_dissenting_opinions(opinions, answer.answer)),
    }
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
