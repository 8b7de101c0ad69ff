"""Format answers as text for a page."""

from collections.abc import Iterator
from dataclasses import dataclass

from unreel.annotation.campaign import StudyArm
from unreel.annotation.campaign_state import AnnotatorJudgement, By
from unreel.annotation.consensus.outcome import SettledTask
from unreel.annotation.judgements import AnyValue, RatingAnswer, TraceAnswer
from unreel.annotation.opinion import answer_of
from unreel.annotation.page.disputes import COLOURS, TaskDispute
from unreel.core.estimate import Estimate, Measured
from unreel.core.span import MICROSECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayedAnswer:
    """One person's word on a task."""

    annotator: str
    colour: str
    """Class of the player's colour for this person."""
    answer: str
    texts: tuple[str, ...]
    seconds: str
    """Time on task; "" if unknown."""
    arm: str
    """Whether they saw earlier marks; "" in a campaign without any."""
    link: str
    """Link to the task; "" if there is none."""


def iter_displayed_answers(dispute: TaskDispute, links: dict[By, str]) -> Iterator[DisplayedAnswer]:
    """Yield all answers, in the order and colours of the timeline."""
    for place, opinion in enumerate(dispute.said):
        lead_us = opinion.lead_us if isinstance(opinion, AnnotatorJudgement) else None
        arm = opinion.arm if isinstance(opinion, AnnotatorJudgement) else StudyArm.PLAIN
        yield DisplayedAnswer(
            annotator=opinion.annotator,
            colour=f"c{place % COLOURS}",
            answer=format_answer(opinion.value),
            texts=tuple(_iter_answer_texts(opinion.value)),
            seconds="" if lead_us is None else f"{lead_us / MICROSECONDS:.0f} s",
            arm="" if arm is StudyArm.PLAIN else arm.value,
            link=links.get((opinion.annotator, dispute.task.id), ""),
        )


def format_answer(value: AnyValue) -> str:
    """Format the answer in a few words."""
    answer = answer_of(value).replace("-", " ")
    if isinstance(value, TraceAnswer) and value.traces:
        n = len(value.traces)
        return f"{answer}, {n} fault{'s' if n > 1 else ''}"
    return answer


def format_outcome(dispute: TaskDispute) -> str:
    """Return the consensus as text, or the reason why there is none."""
    if isinstance(dispute.outcome, SettledTask):
        way = dispute.outcome.method.value.replace("-", " ")
        return f"settled by {way}: {format_answer(dispute.outcome.value)}"
    return f"not settled, {dispute.outcome.why.value.replace('-', ' ')}: {dispute.outcome.detail}"


def format_measured(value: Measured, *, places: int) -> tuple[str, str]:
    """Return the number, and its confidence interval and count; or "" and the reason if not measured."""
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
