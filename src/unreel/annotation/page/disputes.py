"""Disagreement of the annotators on each task, and the text of answers on the campaign page."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from statistics import fmean
from typing import Any, Final

from unreel.annotation.campaign import AnnotationTask, AnnotatorClipCopy, PrefillStudyArm
from unreel.annotation.campaign_state import AnnotatorJudgement, By
from unreel.annotation.consensus.outcome import Outcome, SettledTask
from unreel.annotation.consensus.trace_matching import measure_trace_similarity
from unreel.annotation.judgements import AnyValue, RatingAnswer, TraceAnswer
from unreel.annotation.opinion import (
    AnnotatorOpinion,
    get_categorical_answer,
    group_opinions_by_task,
)
from unreel.annotation.publishing.publishable_campaign import PublishableCampaign
from unreel.core.estimate import Estimate, Measured
from unreel.core.span import MICROSECONDS
from unreel.core.trace import Trace
from unreel.pages.player import PlayerBoxSpec, PlayerSpec, PlayerTraceSpec, PlayerTrackSpec

_SCALE: Final = 4
"""Difference between the highest and the lowest score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDisagreement:
    """Task with all its opinions, its consensus outcome and the amount of disagreement."""

    task: AnnotationTask
    said: tuple[AnnotatorOpinion, ...]
    """Opinions on the task, sorted by annotator."""
    outcome: Outcome
    distance: float
    """Amount of disagreement, from 0 to 1."""

    @property
    def is_settled(self) -> bool:
        """Return whether the annotators of the task reached a consensus."""
        return isinstance(self.outcome, SettledTask)

    @property
    def name(self) -> str:
        """Return the name of the task's clip, or the names of both clips."""
        return " | ".join(self.task.names)


def rank_task_disagreements(edition: PublishableCampaign) -> list[TaskDisagreement]:
    """Return all judged tasks: tasks without consensus first, then by decreasing disagreement."""
    tasks = [
        TaskDisagreement(
            task=opinions[0].task,
            said=tuple(opinions),
            outcome=edition.consensus.tasks[id_],
            distance=measure_disagreement([o.value for o in opinions], opinions[0].task.copies[0]),
        )
        for id_, opinions in group_opinions_by_task(edition.opinions).items()
    ]
    return sorted(tasks, key=lambda task: (task.is_settled, -task.distance, task.task.names))


def measure_disagreement(values: Sequence[AnyValue], copy: AnnotatorClipCopy) -> float:
    """Compute the disagreement of the answers to one task: 0 if all agree, at most 1.

    For votes and choices it is the fraction of people who do not give the most common answer. For
    scores it is their range. For traces it is the larger of that fraction and the mean missing
    overlap.
    """
    apart = _compute_answer_disagreement(values)
    scores = [
        v.rating.score for v in values if isinstance(v, RatingAnswer) and v.rating is not None
    ]
    if len(scores) == len(values) > 0:
        return (max(scores) - min(scores)) / _SCALE
    marked = [v for v in values if isinstance(v, TraceAnswer)]
    pairs = [1 - _compute_trace_agreement(a, b, copy) for a, b in combinations(marked, 2)]
    return max([apart, fmean(pairs)]) if pairs else apart


def _compute_answer_disagreement(values: Sequence[AnyValue]) -> float:
    tally = Counter(map(get_categorical_answer, values))
    return 1 - tally.most_common(1)[0][1] / len(values) if values else 0.0


def _compute_trace_agreement(a: TraceAnswer, b: TraceAnswer, copy: AnnotatorClipCopy) -> float:
    """Compute the mean best-match similarity of each trace of two annotators; 1 without traces."""
    best = [
        max((measure_trace_similarity(mine, theirs, copy) for theirs in right.traces), default=0.0)
        for left, right in ((a, b), (b, a))
        for mine in left.traces
    ]
    return fmean(best) if best else 1.0


COLOURS: Final = 6
"""Number of colours of the player; further annotators reuse them."""
_MOST_INSTANTS: Final = 1800
"""Maximum number of frame times per clip on a page of many clips; the player steps longer clips by time."""


def build_task_player_data(
    dispute: TaskDisagreement, sources: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the video player's data for each clip of the task; clips not in `sources` are skipped."""
    return [
        asdict(_build_player_spec(dispute, copy, name, sources[copy.clip]))
        for copy, name in zip(dispute.task.copies, dispute.task.names, strict=True)
        if copy.clip in sources
    ]


def _build_player_spec(
    dispute: TaskDisagreement, copy: AnnotatorClipCopy, name: str, source: str
) -> PlayerSpec:
    tracks = tuple(_iter_track_specs(dispute)) if len(dispute.task.copies) == 1 else ()
    starts = [trace.start_us for track in tracks for trace in track.traces]
    frames = range(copy.n_frames) if copy.n_frames <= _MOST_INSTANTS else ()
    return PlayerSpec(
        src=source,
        width=copy.width,
        height=copy.height,
        duration_us=copy.duration_us,
        first_us=0,
        instants=tuple(copy.at_us(frame) for frame in frames),
        shown_us=(),
        tracks=tracks,
        title=name,
        opens_us=min((start for start in starts if start is not None), default=None),
    )


def _iter_track_specs(dispute: TaskDisagreement) -> Iterator[PlayerTrackSpec]:
    """Yield the player's timeline tracks: known answer, consensus, then each annotator's answer."""
    if dispute.task.known is not None:
        yield _build_track_spec("known answer", dispute.task.known, kind="truth")
    if isinstance(dispute.outcome, SettledTask):
        yield _build_track_spec("settled", dispute.outcome.value, kind="truth")
    for opinion in dispute.said:
        yield _build_track_spec(opinion.annotator, opinion.value, kind="answer")


def _build_track_spec(name: str, value: AnyValue, *, kind: str) -> PlayerTrackSpec:
    traces = value.traces if isinstance(value, TraceAnswer) else ()
    return PlayerTrackSpec(
        name=name,
        kind="truth" if kind == "truth" else "answer",
        traces=tuple(map(_build_trace_spec, traces)),
        note=get_categorical_answer(value).replace("-", " "),
    )


def _build_trace_spec(trace: Trace) -> PlayerTraceSpec:
    kinds = ", ".join(sorted(category.value for category in trace.categories))
    return PlayerTraceSpec(
        start_us=trace.span.start_us,
        end_us=trace.span.end_us,
        boxes=tuple(map(PlayerBoxSpec.of, trace.track)),
        label=kinds or "fault",
        text=trace.explanation,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayedAnswer:
    """One annotator's answer to a task, formatted for the page."""

    annotator: str
    colour: str
    """CSS class of the annotator's colour in the player."""
    answer: str
    texts: tuple[str, ...]
    seconds: str
    """Time spent on the task, as text; "" if unknown."""
    arm: str
    """Study arm: whether the annotator saw earlier annotations; "" outside a study."""
    link: str
    """URL of the task; "" if there is none."""


def iter_displayed_answers(
    dispute: TaskDisagreement, links: dict[By, str]
) -> Iterator[DisplayedAnswer]:
    """Yield all answers to a task for the page, in the order and colours of the player's timeline."""
    for i, opinion in enumerate(dispute.said):
        lead_us = opinion.lead_us if isinstance(opinion, AnnotatorJudgement) else None
        arm = opinion.arm if isinstance(opinion, AnnotatorJudgement) else PrefillStudyArm.PLAIN
        yield DisplayedAnswer(
            annotator=opinion.annotator,
            colour=f"c{i % COLOURS}",
            answer=format_annotator_answer(opinion.value),
            texts=tuple(_iter_answer_texts(opinion.value)),
            seconds="" if lead_us is None else f"{lead_us / MICROSECONDS:.0f} s",
            arm="" if arm is PrefillStudyArm.PLAIN else arm.value,
            link=links.get((opinion.annotator, dispute.task.id), ""),
        )


def format_annotator_answer(value: AnyValue) -> str:
    """Return an annotator's answer as a few words."""
    answer = get_categorical_answer(value).replace("-", " ")
    if isinstance(value, TraceAnswer) and value.traces:
        n = len(value.traces)
        return f"{answer}, {n} fault{'s' if n > 1 else ''}"
    return answer


def format_consensus_outcome(dispute: TaskDisagreement) -> str:
    """Return the consensus of a task as text, or the reason why there is none."""
    if isinstance(dispute.outcome, SettledTask):
        way = dispute.outcome.method.value.replace("-", " ")
        return f"settled by {way}: {format_annotator_answer(dispute.outcome.value)}"
    return f"not settled, {dispute.outcome.why.value.replace('-', ' ')}: {dispute.outcome.detail}"


def format_value_and_interval(value: Measured, *, places: int) -> tuple[str, str]:
    """Return the value and its interval with n as texts; "" and the reason if it is not measured."""
    if isinstance(value, Estimate):
        ends = f"{value.low:.{places}f} to {value.high:.{places}f}"
        return f"{value.value:.{places}f}", f"{ends}, n {value.n:,}"
    return "", f"not measured: {value.why}"


def _iter_answer_texts(value: AnyValue) -> Iterator[str]:
    match value:
        case TraceAnswer():
            yield from (trace.explanation for trace in value.traces if trace.explanation)
        case RatingAnswer(rating=rating) if rating is not None:
            yield from (text for text in (rating.problem, rating.adherence) if text)
        case _:
            return
