"""Conversion of a task's consensus into an entry of the published benchmark."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from unreel.annotation.judgements import (
    PassFailAnswer,
    PreferenceAnswer,
    RatingAnswer,
    ScreeningAnswer,
    TraceAnswer,
    Value,
    VoteAnswer,
)
from unreel.benchmarks.entry import Entry, Rejected, Row
from unreel.core.judgement import Label, Rating, Vote
from unreel.core.trace import Trace
from unreel.protocols.realism_rubric import measure_trace_coverage


def build_consensus_entry(
    entry: Entry, value: Value, answers: Mapping[str, Value], *, duration_us: int
) -> Row:
    """Return the benchmark entry with the consensus `value` as truth and the single `answers`.

    A clip that the consensus discards is rejected. The label real or generated remains the original
    one, whatever the consensus is.
    """
    if reason := _format_rejection_reason(value):
        return Rejected(entry.name, reason)
    match value:
        case TraceAnswer():
            return _build_traced_entry(entry, value, answers, duration_us=duration_us)
        case RatingAnswer():
            answered = [v.rating for v in answers.values() if isinstance(v, RatingAnswer)]
            ratings = tuple(rating for rating in answered if rating is not None)
            return replace(entry, rating=value.rating, ratings=ratings)
        case VoteAnswer():
            return replace(entry, votes=_collect_votes(answers))
        case ScreeningAnswer() | PreferenceAnswer() | PassFailAnswer():
            return entry


def build_undecided_entry(entry: Entry, answers: Mapping[str, Value]) -> Entry:
    """Return the benchmark entry of a clip without consensus: only the annotators' votes are added."""
    return replace(entry, votes=_collect_votes(answers)) if _collect_votes(answers) else entry


def has_traces_on_real_clip(entry: Entry, value: Value) -> bool:
    """Return whether the annotators' consensus has traces although the clip is real."""
    return isinstance(value, TraceAnswer) and bool(value.traces) and entry.label is Label.REAL


def rate_traces_by_rubric(traces: Sequence[Trace], *, duration_us: int) -> Rating:
    """Return the realism rating that the rubric gives for the area and duration of the traces."""
    coverage = measure_trace_coverage(traces, duration_us=duration_us)
    reasons = dict.fromkeys(trace.explanation for trace in traces if trace.explanation)
    return Rating(
        score=coverage.level,
        problem=" ".join(reasons),
        adherence=(
            f"{len(traces)} marked, over {_format_percent(coverage.picture)} of the picture "
            f"and {_format_percent(coverage.time)} of the time"
        ),
    )


def _format_rejection_reason(value: Value) -> str:
    match value:
        case ScreeningAnswer(keep=False):
            return "annotators removed it"
        case RatingAnswer(rating=None):
            return "annotators discarded it for its quality"
        case _:
            return ""


def _build_traced_entry(
    entry: Entry, value: TraceAnswer, answers: Mapping[str, Value], *, duration_us: int
) -> Entry:
    traced = {name: v for name, v in answers.items() if isinstance(v, TraceAnswer)}
    is_real = entry.label is Label.REAL
    traces = () if is_real else value.traces
    return replace(
        entry,
        traces=traces,
        rating=rate_traces_by_rubric(traces, duration_us=duration_us),
        ratings=tuple(
            rate_traces_by_rubric(v.traces, duration_us=duration_us) for v in traced.values()
        ),
        votes=_collect_votes(answers),
    )


def _collect_votes(answers: Mapping[str, Value]) -> tuple[Vote, ...]:
    return tuple(
        Vote(name, value.label)
        for name, value in answers.items()
        if isinstance(value, VoteAnswer | TraceAnswer) and value.label is not None
    )


def _format_percent(fraction: Fraction) -> str:
    return f"{100 * float(fraction):.1f} %"
