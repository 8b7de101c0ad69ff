"""Consensus of annotators: traces merged into one, scores and votes by majority or weighted by accuracy."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import combinations

import numpy as np

from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationTask,
    AnnotatorClipCopy,
    AnyValue,
    PassFailAnswer,
    PreferenceAnswer,
    RatingAnswer,
    ScreeningAnswer,
    TraceAnswer,
    VoteAnswer,
)
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
from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Label, Rating
from unreel.core.span import MICROSECONDS, TimeSpan
from unreel.core.trace import BoxAt, Trace
from unreel.protocols.locate.segment_comparison import (
    Corners,
    compute_box_ious,
    interpolate_trace_boxes,
)
from unreel.stats.copied_answers import (
    FEWEST_PEOPLE,
    FEWEST_SHARED,
    MAX_PEOPLE,
    CopyingAnnotatorPair,
    find_copying_annotators,
)
from unreel.stats.dawid_skene import CrossFittedDawidSkene, cross_fit_dawid_skene
from unreel.stats.row_sample import IntArray


@dataclass(frozen=True, slots=True, eq=False)
class TraceTube:
    """Boxes of a trace on every frame of its span."""

    span: TimeSpan
    first: int
    """Number of the first frame."""
    end: int
    """Number of the frame after the last one."""
    corners: Corners | None
    """Corners of the box on each frame; `None` for a trace without boxes."""


def build_trace_tube(trace: Trace, copy: AnnotatorClipCopy) -> TraceTube:
    """Compute the boxes of a trace on every frame of its span in the clip copy `copy`."""
    first, end = copy.frame_at(trace.span.start_us), copy.frame_at(trace.span.end_us - 1) + 1
    if not trace.track:
        return TraceTube(trace.span, first, end, None)
    instants_us = np.rint(np.arange(first, end) * (MICROSECONDS / float(copy.rate)))
    return TraceTube(
        trace.span, first, end, interpolate_trace_boxes(trace, instants_us.astype(np.int64))
    )


def mean_box_iou_on_shared_frames(a: TraceTube, b: TraceTube) -> float | None:
    """Compute the mean box IoU over frames of both tubes; `None` without such frames or boxes."""
    overlaps = _compute_frame_overlaps(a, b)
    return None if overlaps is None or not len(overlaps) else float(overlaps.mean())


def tube_iou(a: TraceTube, b: TraceTube) -> float | None:
    """Compute the mean box IoU over the frames of either tube (0 if only one has it); `None` without boxes."""
    overlaps = _compute_frame_overlaps(a, b)
    if overlaps is None:
        return None
    either = (a.end - a.first) + (b.end - b.first) - len(overlaps)
    return float(overlaps.sum()) / either


def measure_trace_similarity(a: Trace, b: Trace, copy: AnnotatorClipCopy) -> float:
    """Compute the tube IoU of two traces in the copy of a clip; the temporal IoU if one has no boxes."""
    return measure_tube_overlap(build_trace_tube(a, copy), build_trace_tube(b, copy))


def measure_tube_overlap(a: TraceTube, b: TraceTube) -> float:
    """Compute the IoU of two tubes; the temporal IoU of their spans if one has no boxes."""
    iou = tube_iou(a, b)
    return a.span.iou(b.span) if iou is None else iou


def _compute_frame_overlaps(a: TraceTube, b: TraceTube) -> Corners | None:
    """Compute the IoU of the boxes of two tubes on each shared frame; `None` if a tube has no boxes."""
    if a.corners is None or b.corners is None:
        return None
    first, end = max(a.first, b.first), min(a.end, b.end)
    if first >= end:
        return np.zeros(0)
    left = a.corners[first - a.first : end - a.first]
    right = b.corners[first - b.first : end - b.first]
    return compute_box_ious(left, right)


_SAME_KINDS = 0.05
_SAME_WORDS = 0.001


@dataclass(frozen=True, slots=True)
class AnnotatorTrace:
    """Trace together with the name of its annotator."""

    annotator: str
    trace: Trace


Cluster = tuple[AnnotatorTrace, ...]
"""Traces by different annotators that mark the same fault."""


def cluster_annotator_traces(
    traces: Mapping[str, Sequence[Trace]], copy: AnnotatorClipCopy, *, same_fault: float
) -> list[Cluster]:
    """Cluster the traces of all annotators by fault; return the clusters in order of time.

    A cluster contains at most one trace of each annotator. For each two annotators, traces are
    matched one to one so that the total similarity is largest. Clusters of matched traces are then
    merged, most similar pair first, if the mean overlap between the two clusters is at least
    `same_fault`. The order of annotators and traces does not change the result.
    """
    annotator_traces = [
        AnnotatorTrace(who, trace)
        for who in sorted(traces)
        for trace in sorted(traces[who], key=get_trace_sort_key)
    ]
    # Similarity by place and time, and a small one by category and text, which only separates faults
    # at the same place and time.
    overlap, likeness = np.zeros((2, len(annotator_traces), len(annotator_traces)))
    tubes = [build_trace_tube(mark.trace, copy) for mark in annotator_traces]
    for i, j in combinations(range(len(annotator_traces)), 2):
        if annotator_traces[i].annotator != annotator_traces[j].annotator:
            a, b = annotator_traces[i].trace, annotator_traces[j].trace
            overlap[i, j] = overlap[j, i] = measure_tube_overlap(tubes[i], tubes[j])
            either = a.categories | b.categories
            kinds = len(a.categories & b.categories) / len(either) if either else 1.0
            text = _SAME_KINDS * kinds + _SAME_WORDS * (a.explanation == b.explanation)
            likeness[i, j] = likeness[j, i] = overlap[i, j] + text
    group = list(range(len(annotator_traces)))
    members = {number: [number] for number in group}
    for i, j in _match_trace_pairs(annotator_traces, overlap, likeness, same_fault):
        left, right = members[group[i]], members[group[j]]
        people = [annotator_traces[k].annotator for k in (*left, *right)]
        if len(set(people)) < len(people) or overlap[np.ix_(left, right)].mean() < same_fault:
            continue
        for k in members.pop(group[j]):
            left.append(k)
            group[k] = group[i]
    clusters = [tuple(annotator_traces[k] for k in sorted(ids)) for ids in members.values()]
    return sorted(clusters, key=lambda cluster: get_trace_sort_key(cluster[0].trace))


def get_trace_sort_key(trace: Trace) -> tuple[object, ...]:
    """Return a sort key for traces: time first, then boxes, categories and explanation."""
    track = tuple((m.at_us, m.box.x0, m.box.y0, m.box.x1, m.box.y1) for m in trace.track)
    return trace.span, track, sorted(trace.categories), trace.explanation


def _match_trace_pairs(
    traces: Sequence[AnnotatorTrace], overlap: np.ndarray, likeness: np.ndarray, same_fault: float
) -> list[tuple[int, int]]:
    """Match traces of each two annotators one to one by largest total similarity; return index pairs."""
    from scipy.optimize import linear_sum_assignment

    whose = np.array([mark.annotator for mark in traces])
    matches = []
    for a, b in combinations(sorted(set(whose.tolist())), 2):
        left, right = np.flatnonzero(whose == a), np.flatnonzero(whose == b)
        block = np.ix_(left, right)
        similarity = np.where(overlap[block] >= same_fault, likeness[block], 0.0)
        for row, column in zip(*linear_sum_assignment(similarity, maximize=True), strict=True):
            if similarity[row, column] > 0:
                matches.append((-similarity[row, column], int(left[row]), int(right[column])))
    return [(i, j) for _, i, j in sorted(matches)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusTrace:
    """Merged trace of one fault that a quorum of annotators marked."""

    trace: Trace
    marked_by: tuple[str, ...]
    words_of: str


def merge_annotator_traces(
    task: AnnotationTask, traces: Mapping[str, Sequence[Trace]], rule: ConsensusRule
) -> tuple[list[ConsensusTrace], list[AnnotatorTrace]]:
    """Merge each fault that `rule.quorum` annotators marked into one trace; also list the other traces.

    The merged traces are in order of time, the others are sorted by annotator.
    """
    copy = task.copies[0]
    clusters = cluster_annotator_traces(traces, copy, same_fault=rule.same_fault)
    merged = [
        _merge_trace_cluster(task, cluster, rule.quorum)
        for cluster in clusters
        if len(cluster) >= rule.quorum
    ]
    unshared = (mark for cluster in clusters if len(cluster) < rule.quorum for mark in cluster)
    return (
        sorted(merged, key=lambda fault: get_trace_sort_key(fault.trace)),
        sorted(unshared, key=lambda mark: (mark.annotator, get_trace_sort_key(mark.trace))),
    )


def _merge_trace_cluster(task: AnnotationTask, cluster: Cluster, quorum: int) -> ConsensusTrace:
    """Merge traces of different annotators that mark the same fault into one trace.

    Span and boxes are medians; a category needs more than half of the annotators. The boxes are
    merged at the key-frame times of the trace most similar to all others, if at least `quorum`
    traces have boxes. The explanation is the one by the annotator whose trace is most similar to
    all others.
    """
    copy = task.copies[0]
    tubes = {mark.annotator: build_trace_tube(mark.trace, copy) for mark in cluster}
    distances = {
        who: round(-sum(measure_tube_overlap(tube, t) for t in tubes.values() if t is not tube), 9)
        for who, tube in tubes.items()
    }
    span = _compute_median_span([mark.trace.span for mark in cluster], copy)
    placed = [mark for mark in cluster if mark.trace.track]
    closest = min(placed, key=lambda mark: distances[mark.annotator], default=None)
    track: tuple[BoxAt, ...] = ()
    if closest and len(placed) >= quorum:
        # The key-frame times of the closest trace inside the span; its ends if boxes lie beyond them.
        marked = [mark.at_us for mark in closest.trace.track]
        instants = {at for at in marked if span.start_us <= at < span.end_us}
        if marked[0] < span.start_us or not instants:
            instants.add(span.start_us)
        if marked[-1] >= span.end_us:
            instants.add(max(span.start_us, copy.at_us(copy.frame_at(span.end_us - 1))))
        track = _compute_median_track([mark.trace for mark in placed], sorted(instants))
    texts = {mark.annotator: mark.trace.explanation for mark in cluster}
    words_of = choose_consensus_text_author(
        task.id, list(texts.items()), distance=distances.__getitem__
    )
    named = Counter(kind for mark in cluster for kind in mark.trace.categories)
    merged = Trace(
        span=span,
        track=track,
        categories=frozenset(kind for kind, n in named.items() if 2 * n > len(cluster)),
        explanation=texts.get(words_of, ""),
    )
    return ConsensusTrace(trace=merged, marked_by=tuple(sorted(texts)), words_of=words_of)


def _compute_median_span(spans: Sequence[TimeSpan], copy: AnnotatorClipCopy) -> TimeSpan:
    """Return the span of median start to median end, moved to the start of the frame visible then."""
    medians, on_frames = [], []
    for instants in ([span.start_us for span in spans], [span.end_us for span in spans]):
        ordered = sorted(instants)
        half = len(ordered) // 2
        median = (ordered[half] + ordered[-1 - half]) // 2
        medians.append(median)
        is_known = median in instants
        on_frames.append(median if is_known else copy.at_us(copy.frame_at(median)))
    return TimeSpan(*(on_frames if on_frames[0] < on_frames[1] else medians))


def _compute_median_track(traces: Sequence[Trace], instants_us: Sequence[int]) -> tuple[BoxAt, ...]:
    corners = np.stack([interpolate_trace_boxes(trace, instants_us) for trace in traces])
    visible = np.array(
        [[t.span.start_us <= at < t.span.end_us for at in instants_us] for t in traces]
    )
    visible[:, ~visible.any(axis=0)] = True
    boxes = []
    for i, at_us in enumerate(instants_us):
        x0, y0, x1, y1 = np.median(corners[visible[:, i], i], axis=0).tolist()
        boxes.append(BoxAt(at_us, Box(x0, y0, x1, y1)))
    return tuple(boxes)


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
            f"and their accuracy explains {pair.n_expected:.0f}: both count as one voice"
        )
    if pairs is None:
        yield (
            f"pairs that share their answers were not looked for: that needs {FEWEST_PEOPLE} to {MAX_PEOPLE} people, and {FEWEST_SHARED} tasks "
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
    AnnotationInterface.LOCATE: TraceAnswer,
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
        tasks={id_: _decide_task(opinions, rule, tally) for id_, opinions in tasks.items()},
        weights=weighing.weights if weighing else {},
        notes=weighing.notes if weighing else (),
    )
    return apply_consensus_reviews(result, tasks, reviews) if reviews or rule.reviews else result


def _decide_task(
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
        return _decide_trace_task(opinions, rule, result)
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


def _decide_trace_task(
    opinions: Sequence[AnnotatorOpinion], rule: ConsensusRule, answer: ConsensusAnswer
) -> Outcome:
    """Return the outcome of a generated clip: traces with `rule.quorum` marks; the others are dissent."""
    traces = {o.annotator: o.value.traces for o in opinions if isinstance(o.value, TraceAnswer)}
    faults, unshared = merge_annotator_traces(opinions[0].task, traces, rule)
    n_marked = sum(map(bool, traces.values()))
    if n_marked >= rule.quorum and not faults:
        detail = f"{n_marked} marked something, and nothing was marked by {rule.quorum}"
        return build_open_task(opinions, NoConsensusReason.NO_COMMON_FAULT, detail)
    support = sorted({who for fault in faults for who in fault.marked_by})
    agreeing = [o.annotator for o in opinions if get_categorical_answer(o.value) == answer.answer]
    dissent: dict[str, AnyValue] = {}
    for who in dict.fromkeys(mark.annotator for mark in unshared):
        own = tuple(mark.trace for mark in unshared if mark.annotator == who)
        dissent[who] = TraceAnswer(traces=own, label=Label.GENERATED)
    dissent |= dict(_select_dissenting_opinions(opinions, answer.answer))
    return SettledTask(
        value=TraceAnswer(traces=tuple(fault.trace for fault in faults), label=Label.GENERATED),
        support=tuple(support or agreeing),
        dissent=tuple(sorted(dissent.items(), key=lambda item: item[0])),
        method=answer.method,
        words_of=faults[0].words_of if len(faults) == 1 else "",
        backing=tuple(fault.marked_by for fault in faults),
        p_right=answer.p_right,
    )
