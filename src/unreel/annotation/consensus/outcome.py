"""Opinions of annotators, the settings and outcomes of a consensus, and its review by people.

A review is a notice in the ledger. It names the reviewed value and applies only to that value.
If a new judgement or an exclusion changes the value, the task needs a new review.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol, TypeVar, assert_never

from unreel.annotation.campaign import (
    VALUES,
    AnnotationInterface,
    AnnotationTask,
    AnyValue,
    PassFailAnswer,
    PreferenceAnswer,
    RatingAnswer,
    ScreeningAnswer,
    TraceAnswer,
    VoteAnswer,
)
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError, InvalidValueError

UNDECIDED = "cannot-tell"
DISCARD = "discard"


class AnnotatorOpinion(Protocol):
    """Protocol of one annotator's answer to one task; judgements from a ledger implement it."""

    @property
    def annotator(self) -> str:
        """Return the name of the annotator who answered."""
        ...

    @property
    def task(self) -> AnnotationTask: ...

    @property
    def value(self) -> AnyValue:
        """Return the annotator's answer to the task."""
        ...

    @property
    def submitted_us(self) -> int:
        """Return the time at which the answer was submitted, in microseconds since 1970."""
        ...


AnyOpinion = TypeVar("AnyOpinion", bound=AnnotatorOpinion)


def get_categorical_answer(value: AnyValue) -> str:
    """Return the part of an answer that is compared, as one word: label, score, position or decision."""
    match value:
        case ScreeningAnswer():
            return "keep" if value.keep else "remove"
        case TraceAnswer() | VoteAnswer():
            return value.label.value if value.label else UNDECIDED
        case RatingAnswer():
            return str(value.rating.score) if value.rating else DISCARD
        case PreferenceAnswer():
            return value.better.value
        case PassFailAnswer():
            return "pass" if value.passed else "fail"
        case _:
            assert_never(value)


def group_opinions_by_task(opinions: Iterable[AnyOpinion]) -> Mapping[str, Sequence[AnyOpinion]]:
    """Group opinions by task id and annotator, sorted; raise `InvalidValueError` for a second opinion."""
    grouped: dict[str, dict[str, AnyOpinion]] = defaultdict(dict)
    for opinion in opinions:
        id_ = opinion.task.id
        if opinion.annotator in grouped[id_]:
            raise InvalidValueError(
                f"{opinion.annotator} judged the task {id_} twice. Give the newest judgement of each "
                "annotator, as read_campaign does"
            )
        grouped[id_][opinion.annotator] = opinion
    return {
        id_: tuple(opinion for _, opinion in sorted(grouped[id_].items(), key=lambda item: item[0]))
        for id_ in sorted(grouped)
    }


SAME_FAULT = 0.2
"""Minimum tube IoU of marks of the same fault, in a consensus, in agreement and on known clips."""


class ConsensusMethod(StrEnum):
    """Method that combines the answers of several annotators to one task."""

    MAJORITY = "majority"
    """All annotators have equal weight."""
    DAWID_SKENE = "dawid-skene"
    """Annotators are weighted by their estimated accuracy over all tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusRule:
    """Conditions under which the answers to a task become a consensus."""

    quorum: int = 2
    """Minimum number of annotators who give the same answer, or mark the same fault."""
    min_overlap: int = 2
    """Minimum number of annotators who must have judged a task before it can have a consensus."""
    method: ConsensusMethod = ConsensusMethod.MAJORITY
    same_fault: float = SAME_FAULT
    sure: float = 0.5
    """Minimum probability of the answer by Dawid-Skene; exclusive with weights, inclusive with majorities."""

    reviews: int = 0
    """Number of reviewers who must have accepted the consensus of a task; its annotators do not count."""

    def __post_init__(self) -> None:
        if self.reviews < 0:
            raise InvalidSettingError(
                "reviews", f"must be at least 0, got {self.reviews}", "Give 0 or more"
            )
        for name, count in (("quorum", self.quorum), ("min-overlap", self.min_overlap)):
            if count < 1:
                raise InvalidSettingError(
                    name, f"must be at least 1, got {count}", "Give 1 or more"
                )
        for name, share in (("same-fault", self.same_fault), ("sure", self.sure)):
            if not 0 < share < 1:
                raise InvalidSettingError(
                    name, f"must be between 0 and 1, got {share}", "Give a number between 0 and 1"
                )


Dissent = tuple[str, AnyValue]
"""Annotator's name and answer; in a settled task, an answer that differs from the consensus."""


class TaskSettlementMethod(StrEnum):
    """Method by which the consensus of a task was found: majority, mean, weighting or a review."""

    MAJORITY = "majority"
    ROUNDED_MEAN = "rounded-mean"
    DAWID_SKENE = "dawid-skene"
    REVIEW = "review"
    """Choice of one annotator's answer by a reviewer."""


class NoConsensusReason(StrEnum):
    """Reason why a task has no consensus. The values are stored: add, never rename."""

    TOO_FEW = "too-few-judged"
    TIE = "no-majority"
    NO_QUORUM = "no-quorum"
    NO_COMMON_FAULT = "no-common-fault"
    """Agreement that the clip is generated, but not on any of its faults."""
    UNSURE = "not-sure-enough"
    SENT_BACK = "sent-back"
    """Request by a reviewer to judge the task again."""
    NOT_REVIEWED = "not-reviewed"
    """Consensus that fewer reviewers have accepted than the rule requires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledTask:
    """Consensus of one task: the answer, and the annotators who agree and who dissent."""

    value: AnyValue
    support: tuple[str, ...]
    """Names of the annotators who gave this answer; for traces, of those who marked a fault in `value`."""
    dissent: tuple[Dissent, ...] = ()
    """Other answers, and faults that too few annotators marked."""
    method: TaskSettlementMethod
    words_of: str = ""
    """Author of the rationale or explanation in `value`; "" if there is none, or for several
    faults.
    """
    backing: tuple[tuple[str, ...], ...] = ()
    """Annotators who marked each trace of `value`, in the order of the traces."""
    p_right: float | None = None
    """Probability of the answer by Dawid-Skene; `None` if it was not computed."""
    accepted_by: tuple[str, ...] = ()
    """Names of the reviewers who accepted exactly this value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTask:
    """Task without a consensus: the reason, and all judgements."""

    why: NoConsensusReason
    detail: str
    judgements: tuple[Dissent, ...]
    """All judgements of the task, sorted by annotator."""
    proposed: SettledTask | None = None
    """Consensus that becomes valid once enough reviewers accept it."""


Outcome = SettledTask | OpenTask


def build_open_task(
    opinions: Sequence[AnnotatorOpinion], why: NoConsensusReason, detail: str
) -> OpenTask:
    """Return a task without consensus, with all its judgements."""
    judgements = tuple((opinion.annotator, opinion.value) for opinion in opinions)
    return OpenTask(why=why, detail=detail, judgements=judgements)


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignConsensus:
    """Consensus of all judged tasks of a campaign."""

    interface: AnnotationInterface
    rule: ConsensusRule
    tasks: Mapping[str, Outcome]
    """Outcome of each judged task, by task id in sorted order."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Assumed accuracy of each annotator for Dawid-Skene; empty for majorities."""
    notes: tuple[str, ...] = ()
    """Sentences about the weights and about pairs that count as one annotator, for Dawid-Skene."""

    @property
    def settled(self) -> Mapping[str, SettledTask]:
        """Return the tasks that have a consensus, by task id."""
        return {id_: task for id_, task in self.tasks.items() if isinstance(task, SettledTask)}

    @property
    def unsettled(self) -> Mapping[str, OpenTask]:
        """Return the tasks without a consensus, by task id."""
        return {id_: task for id_, task in self.tasks.items() if isinstance(task, OpenTask)}


class ConsensusReviewDecision(StrEnum):
    """Decision of a person who reviews a task's consensus."""

    ACCEPT = "accept"
    TAKE = "take"
    """Choice of one annotator's answer as the consensus."""
    SEND_BACK = "send-back"


class ConsensusReviewNotice(Protocol):
    """Protocol of a decision notice in the ledger that contains a review of a task's consensus."""

    @property
    def subject(self) -> str:
        """Return the id of the reviewed task."""
        ...

    @property
    def by(self) -> str:
        """Return the name of the person who reviewed the consensus."""
        ...

    @property
    def said(self) -> str:
        """Return the content of the review as JSON."""
        ...

    @property
    def at_us(self) -> int:
        """Return the time of the review in microseconds since 1970."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusReview:
    """Review of the consensus of one task by one person: the decision and its reason."""

    task: str
    by: str
    verdict: ConsensusReviewDecision
    why: str
    of: str = ""
    """Hash of the accepted or taken answer, by `hash_answer`."""
    annotator: str = ""
    """Annotator whose answer is taken."""
    at_us: int

    @property
    def notice_text(self) -> str:
        """Return the content of the review as JSON, to be stored in a ledger notice."""
        content = {
            "verdict": self.verdict.value,
            "why": self.why,
            "of": self.of,
            "annotator": self.annotator,
        }
        return json.dumps(content, sort_keys=True)


def parse_consensus_review(notice: ConsensusReviewNotice) -> ConsensusReview:
    """Parse a ledger notice of the kind `review`; raise `InvalidValueError` if it is none."""
    try:
        content = json.loads(notice.said)
        verdict, texts = (
            ConsensusReviewDecision(content["verdict"]),
            [content[k] for k in ("why", "of", "annotator")],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidValueError(
            f"the notice about {notice.subject!a} is not a review. Review the task again"
        ) from error
    why, of, annotator = map(str, texts)
    return ConsensusReview(
        task=notice.subject,
        by=notice.by,
        verdict=verdict,
        why=why,
        of=of,
        annotator=annotator,
        at_us=notice.at_us,
    )


def hash_answer(value: AnyValue) -> str:
    """Return a hash of an annotator's answer; equal answers have the same hash in every process."""
    document = VALUES.dump_python(value, mode="json")
    for trace in document.get("traces", ()):
        trace["categories"] = sorted(trace["categories"])
    return digest("value", json.dumps(document, sort_keys=True))[:24]


def apply_consensus_reviews(
    consensus: CampaignConsensus,
    tasks: Mapping[str, Sequence[AnnotatorOpinion]],
    reviews: Sequence[ConsensusReview],
) -> CampaignConsensus:
    """Apply `reviews`, oldest first; tasks with too few acceptances for the rule lose their consensus."""
    by_task: dict[str, list[ConsensusReview]] = {}
    for review in reviews:
        by_task.setdefault(review.task, []).append(review)
    need = consensus.rule.reviews
    outcomes: dict[str, Outcome] = {}
    for id_, before in consensus.tasks.items():
        outcome = _apply_task_reviews(before, tasks[id_], by_task.get(id_, ()))
        if isinstance(outcome, SettledTask) and len(outcome.accepted_by) < need:
            detail = f"{len(outcome.accepted_by)} reviewed it, {need} must"
            reopened = build_open_task(tasks[id_], NoConsensusReason.NOT_REVIEWED, detail)
            outcome = replace(reopened, proposed=outcome)
        outcomes[id_] = outcome
    return replace(consensus, tasks=outcomes)


def _apply_task_reviews(
    before: Outcome, opinions: Sequence[AnnotatorOpinion], reviews: Sequence[ConsensusReview]
) -> Outcome:
    """Return the outcome of a task after its reviews; reviews by annotators of the task are ignored."""
    judges = {opinion.annotator for opinion in opinions}
    newest_us = max(opinion.submitted_us for opinion in opinions)
    outcome = before
    for review in (review for review in reviews if review.by not in judges):
        match review.verdict:
            case ConsensusReviewDecision.SEND_BACK:
                detail = f"by {review.by}: {review.why}"
                back = build_open_task(opinions, NoConsensusReason.SENT_BACK, detail)
                outcome = back if newest_us <= review.at_us else before
            case ConsensusReviewDecision.TAKE:
                # An answer that was changed after the review is not taken.
                for taken in opinions:
                    if (
                        taken.annotator == review.annotator
                        and hash_answer(taken.value) == review.of
                    ):
                        same = [o.annotator for o in opinions if o.value == taken.value]
                        others = [
                            (o.annotator, o.value) for o in opinions if o.value != taken.value
                        ]
                        outcome = SettledTask(
                            value=taken.value,
                            support=tuple(same),
                            dissent=tuple(others),
                            method=TaskSettlementMethod.REVIEW,
                            words_of=taken.annotator,
                            accepted_by=(review.by,),
                        )
                        break
            case ConsensusReviewDecision.ACCEPT:
                outcome = outcome if isinstance(outcome, SettledTask) else before
                if isinstance(outcome, SettledTask) and hash_answer(outcome.value) == review.of:
                    accepted_by = tuple(sorted({*outcome.accepted_by, review.by}))
                    outcome = replace(outcome, accepted_by=accepted_by)
    return outcome


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
