"""Metrics of each annotator and of their majority, computed like the metrics of models.

No annotator is compared with a truth that includes their own answers: if no answer was known
beforehand, the consensus of each clip is computed again without the measured annotator.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unreel.annotation.campaign import AnnotationInterface, AnnotationTask
from unreel.annotation.consensus.consensus import compute_consensus
from unreel.annotation.consensus.outcome import CampaignConsensus, ConsensusRule
from unreel.annotation.judgements import (
    AnyValue,
    PreferenceAnswer,
    RatingAnswer,
    TraceAnswer,
    VoteAnswer,
)
from unreel.annotation.opinion import AnnotatorOpinion
from unreel.annotation.publishing.consensus_entries import rate_traces_by_rubric
from unreel.benchmarks.entry import Entry
from unreel.benchmarks.human_scores import Against, AnnotatorScoreRow, build_human_score_row
from unreel.core.clip import get_first_creator, get_first_creator_setting
from unreel.core.estimate import Unmeasured
from unreel.core.judgement import Label, Rating, build_question_subject
from unreel.core.trace import Trace
from unreel.core.verdict import (
    Position,
    PreferenceVerdict,
    RealismVerdict,
    RealityVerdict,
    TraceVerdict,
    Unparsed,
    UnparsedReason,
)
from unreel.protocols.preference import PREFERENCE
from unreel.protocols.protocol import Protocol, ScoredQuestion
from unreel.protocols.realism import REALISM
from unreel.protocols.reality import REALITY
from unreel.protocols.trace import TRACE
from unreel.protocols.trace.ground_truth import TraceTruth

_SILENT = Unparsed(UnparsedReason.MISSING, "")
_CANNOT_TELL = Unparsed(UnparsedReason.AMBIGUOUS, "cannot tell")
_DISCARDED = Unparsed(UnparsedReason.MISSING, "discarded")


def get_answer_label(value: AnyValue | None) -> Label | Unparsed:
    """Return the label, real or generated, of an annotator's answer; `Unparsed` if there is none."""
    if value is None:
        return Unparsed(UnparsedReason.AMBIGUOUS, "not settled")
    label = value.label if isinstance(value, TraceAnswer | VoteAnswer) else None
    return label if label is not None else _CANNOT_TELL


def to_reality_verdict(value: AnyValue | None) -> RealityVerdict:
    """Convert an annotator's answer to a verdict of the protocol `reality`."""
    return RealityVerdict(label=get_answer_label(value))


def to_trace_verdict(value: AnyValue | None) -> TraceVerdict:
    """Convert an annotator's answer to a verdict of `trace`, of its first trace only, as models give."""
    traces = value.traces if isinstance(value, TraceAnswer) else ()
    first = min(traces, key=_get_span_ends, default=None)
    return TraceVerdict(
        label=get_answer_label(value),
        box=first.track[0].box if first and first.track else _SILENT,
        start_us=first.span.start_us if first else _SILENT,
        explanation=(first.explanation if first else "") or _SILENT,
    )


def to_realism_verdict(rating: Rating | None) -> RealismVerdict:
    """Return the verdict of `realism` for a rating; without a rating, the verdict has no score."""
    if rating is None:
        return RealismVerdict(score=_DISCARDED, problem=_SILENT, adherence=_SILENT)
    return RealismVerdict(
        score=rating.score,
        problem=rating.problem or _SILENT,
        adherence=rating.adherence or _SILENT,
        family=rating.family,
    )


def to_preference_verdict(value: AnyValue | None) -> PreferenceVerdict:
    """Convert an answer to a verdict of `preference`: the clip judged real; `Unparsed` for other answers."""
    if not isinstance(value, PreferenceAnswer):
        return PreferenceVerdict(real=Unparsed(UnparsedReason.AMBIGUOUS, "not settled"))
    return PreferenceVerdict(real=value.better)


def get_answer_rating(value: AnyValue, *, duration_us: int) -> Rating | None:
    """Return an answer's realism rating, by the rubric for marked traces; `None` if it has none."""
    match value:
        case RatingAnswer():
            return value.rating
        case TraceAnswer():
            return rate_traces_by_rubric(value.traces, duration_us=duration_us)
        case _:
            return None


def _get_span_ends(trace: Trace) -> tuple[int, int]:
    return trace.span.start_us, trace.span.end_us


MAJORITY = "majority"
"""Name of the consensus of all annotators in the scores."""
Truths = Mapping[str, AnyValue]
"""Ground truth of tasks, by task id."""
Measuring = Callable[[AnnotationTask, AnyValue | None, AnyValue | None], Iterator[tuple[Any, Any]]]
"""Function that maps a task, its ground truth and an answer to pairs of truth and verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorScoringInput:
    """Input for scoring annotators: their judgements, the consensus and the judged clips."""

    interface: AnnotationInterface
    rule: ConsensusRule
    opinions: Sequence[AnnotatorOpinion]
    consensus: CampaignConsensus
    entries: Mapping[str, Entry]
    """Benchmark entries by name."""
    seed: int
    swapped: frozenset[tuple[str, str]] = frozenset()
    """Annotator and task id of each assignment whose second clip was shown on the left."""

    @property
    def annotators(self) -> list[str]:
        """Return the names of all annotators with a judgement, sorted."""
        return sorted({opinion.annotator for opinion in self.opinions})

    @property
    def tasks(self) -> list[AnnotationTask]:
        """Return the judged tasks whose clips are all in `entries`."""
        by_id = {o.task.id: o.task for o in self.opinions}
        return [t for t in by_id.values() if all(name in self.entries for name in t.names)]

    def said_by(self, annotator: str) -> dict[str, AnyValue]:
        """Return the answers of `annotator` by task id."""
        return {o.task.id: o.value for o in self.opinions if o.annotator == annotator}


def score_annotators(scoring_input: AnnotatorScoringInput) -> tuple[AnnotatorScoreRow, ...]:
    """Compute the metrics of each annotator and of the majority, for each protocol that applies."""
    return tuple(
        row
        for measure in _INSTRUMENTS.get(scoring_input.interface, ())
        for row in measure(scoring_input)
    )


def compute_consensus_of_others(scoring_input: AnnotatorScoringInput, annotator: str) -> Truths:
    """Return the consensus of all others on the tasks that `annotator` judged, by task id.

    Tasks without such a consensus are omitted. Quorum and overlap are lowered to the number of
    others.
    """
    own_tasks = set(scoring_input.said_by(annotator))
    others = [
        o for o in scoring_input.opinions if o.annotator != annotator and o.task.id in own_tasks
    ]
    counts: dict[str, int] = {}
    for opinion in others:
        counts[opinion.task.id] = counts.get(opinion.task.id, 0) + 1
    largest = max(counts.values(), default=1)
    rule = replace(
        scoring_input.rule,
        quorum=min(scoring_input.rule.quorum, largest),
        min_overlap=min(scoring_input.rule.min_overlap, largest),
        reviews=0,
    )
    settled = compute_consensus(others, rule, interface=scoring_input.interface).settled
    return {task: task_result.value for task, task_result in settled.items()}


def _iter_scores_against_origin(
    scoring_input: AnnotatorScoringInput, protocol: Protocol[Any, Any], measuring: Measuring
) -> Iterator[AnnotatorScoreRow]:
    for annotator in scoring_input.annotators:
        yield from _iter_score_rows(
            scoring_input, protocol, annotator, {}, measuring, against="origin"
        )
    yield from _iter_score_rows(scoring_input, protocol, None, {}, measuring, against="origin")


def _iter_scores_against_truth(
    scoring_input: AnnotatorScoringInput, asked: Protocol[Any, Any], measuring: Measuring
) -> Iterator[AnnotatorScoreRow]:
    """Yield the scores of each annotator and of the majority against known answers or the consensus.

    If all tasks have known answers, scores are against these. Otherwise each annotator is scored
    against the consensus of the others, and the majority only against the clips' origins.
    """
    known = {task.id: task.known for task in scoring_input.tasks if task.known is not None}
    if known and len(known) == len(scoring_input.tasks):
        for annotator in (*scoring_input.annotators, None):
            yield from _iter_score_rows(
                scoring_input, asked, annotator, known, measuring, against="known"
            )
        return
    for annotator in scoring_input.annotators:
        truths = compute_consensus_of_others(scoring_input, annotator)
        yield from _iter_score_rows(
            scoring_input, asked, annotator, truths, measuring, against="others"
        )
    # The majority cannot be scored against itself; only the clips' origins give a row.
    yield from _iter_score_rows(scoring_input, asked, None, {}, measuring, against="origin")


def _iter_score_rows(
    scoring_input: AnnotatorScoringInput,
    protocol: Protocol[Any, Any],
    who: str | None,
    truths: Truths,
    measuring: Measuring,
    *,
    against: Against,
) -> Iterator[AnnotatorScoreRow]:
    """Yield the metrics of annotator `who` (the majority if `None`) as one row; nothing without answers."""
    values: Mapping[str, AnyValue] = (
        {id_: settled.value for id_, settled in scoring_input.consensus.settled.items()}
        if who is None
        else scoring_input.said_by(who)
    )
    rows = [
        _build_scored_question(scoring_input, task, truth, verdict)
        for task in scoring_input.tasks
        if who is None or task.id in values
        for truth, verdict in measuring(task, truths.get(task.id), values.get(task.id))
    ]
    if rows:
        card = protocol.score(rows, seed=scoring_input.seed)
        if who is None:
            row = build_human_score_row(MAJORITY, "majority", card, against=against)
        else:
            row = build_human_score_row(who, "annotator", card, against=against)
        yield replace(row, n_judged=len({str(r.subject) for r in rows}))


def _build_scored_question(
    scoring_input: AnnotatorScoringInput, task: AnnotationTask, truth: Any, verdict: Any
) -> ScoredQuestion[Any, Any]:
    entries = [scoring_input.entries[name] for name in task.names]
    origins = [entry.origin for entry in entries]
    return ScoredQuestion(
        subject=build_question_subject(*(copy.clip for copy in task.copies)),
        truth=truth,
        outcome=verdict,
        source=entries[0].group,
        creator=get_first_creator(*origins),
        setting=get_first_creator_setting(*origins),
        difficulty=entries[0].difficulty,
    )


def _iter_reality_scores(scoring_input: AnnotatorScoringInput) -> Iterator[AnnotatorScoreRow]:
    def measuring(
        task: AnnotationTask, _: AnyValue | None, answer: AnyValue | None
    ) -> Iterator[tuple[Any, Any]]:
        yield scoring_input.entries[task.names[0]].origin, to_reality_verdict(answer)

    return _iter_scores_against_origin(scoring_input, REALITY, measuring)


def _iter_preference_scores(scoring_input: AnnotatorScoringInput) -> Iterator[AnnotatorScoreRow]:
    """Yield preference scores of each annotator and of the majority, against the clips' origins.

    An annotator's pairs keep the order in which the annotator saw the clips. The majority has no
    scores by side, because people saw a pair in different orders.
    """
    for who in (*scoring_input.annotators, None):

        def measuring(
            task: AnnotationTask, _: AnyValue | None, answer: AnyValue | None, who: str | None = who
        ) -> Iterator[tuple[Any, Any]]:
            labels = [scoring_input.entries[name].label for name in task.names]
            if set(labels) == set(Label):
                real = Position.FIRST if labels[0] is Label.REAL else Position.SECOND
                verdict = to_preference_verdict(answer)
                turned = (who, task.id) in scoring_input.swapped
                yield (
                    (_get_other_position(real), _swap_verdict(verdict))
                    if turned
                    else (real, verdict)
                )

        for row in _iter_score_rows(
            scoring_input, PREFERENCE, who, {}, measuring, against="origin"
        ):
            yield row if who is not None else _remove_position_metrics(row)


def _swap_verdict(verdict: PreferenceVerdict) -> PreferenceVerdict:
    if isinstance(verdict.real, Unparsed):
        return verdict
    return PreferenceVerdict(real=_get_other_position(verdict.real))


def _get_other_position(position: Position) -> Position:
    return Position.SECOND if position is Position.FIRST else Position.FIRST


def _remove_position_metrics(row: AnnotatorScoreRow) -> AnnotatorScoreRow:
    reason = Unmeasured("people saw the pair in different orders")
    metrics = {name: row[name] if name.startswith("pooled") else reason for name in row.figures}
    return replace(row, figures=metrics)


def _iter_trace_scores(scoring_input: AnnotatorScoringInput) -> Iterator[AnnotatorScoreRow]:
    def measuring(
        task: AnnotationTask, truth: AnyValue | None, answer: AnyValue | None
    ) -> Iterator[tuple[Any, Any]]:
        label = scoring_input.entries[task.names[0]].label
        marked = truth.traces if isinstance(truth, TraceAnswer) and label is Label.GENERATED else ()
        for trace in marked or (None,):
            duration_us = task.copies[0].duration_us
            yield (
                TraceTruth(label=label, duration_us=duration_us, trace=trace),
                to_trace_verdict(answer),
            )

    return _iter_scores_against_truth(scoring_input, TRACE, measuring)


def _iter_realism_scores(scoring_input: AnnotatorScoringInput) -> Iterator[AnnotatorScoreRow]:
    def measuring(
        task: AnnotationTask, truth: AnyValue | None, answer: AnyValue | None
    ) -> Iterator[tuple[Any, Any]]:
        if truth is None or answer is None:
            return
        duration_us = task.copies[0].duration_us
        if (
            isinstance(truth, TraceAnswer)
            and scoring_input.entries[task.names[0]].label is Label.REAL
        ):
            truth = TraceAnswer(traces=(), label=Label.REAL)
        right = get_answer_rating(truth, duration_us=duration_us)
        if right is not None:
            yield right, to_realism_verdict(get_answer_rating(answer, duration_us=duration_us))

    return _iter_scores_against_truth(scoring_input, REALISM, measuring)


_INSTRUMENTS: Mapping[
    AnnotationInterface, tuple[Callable[[AnnotatorScoringInput], Iterator[AnnotatorScoreRow]], ...]
] = {
    AnnotationInterface.REALITY: (_iter_reality_scores,),
    AnnotationInterface.PREFERENCE: (_iter_preference_scores,),
    AnnotationInterface.TRACE: (_iter_trace_scores, _iter_reality_scores, _iter_realism_scores),
    AnnotationInterface.REALISM: (_iter_realism_scores,),
}
