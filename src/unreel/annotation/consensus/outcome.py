"""Settings of a consensus, and the outcome of a task: settled with its dissent, or unsettled."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from unreel.annotation.campaign import AnnotationInterface
from unreel.annotation.judgements import AnyValue
from unreel.core.errors import InvalidSettingError

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
