"""Settings of a consensus, and the outcome of a task: settled with its dissent, or unsettled."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from unreel.annotation.campaign import AnnotationInterface
from unreel.annotation.judgements import AnyValue
from unreel.core.errors import InvalidSettingError

SAME_FAULT: Final = 0.2
"""Tube IoU from which two marks mean the same fault: in a consensus, in agreement and on known clips."""


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
    """How many people must say the same, or mark the same fault."""
    min_overlap: int = 2
    """How many people must have judged a task before it is settled at all."""
    method: ConsensusMethod = ConsensusMethod.MAJORITY
    same_fault: float = SAME_FAULT
    sure: float = 0.5
    """How likely Dawid-Skene's answer must be for the task to be settled; at most so likely is not enough."""

    reviews: int = 0
    """Number of people who did not judge a task and must have accepted its consensus."""

    def __post_init__(self) -> None:
        if self.reviews < 0:
            setting, problem = "reviews", f"{self.reviews} people cannot look"
            raise InvalidSettingError(setting, problem, "Give 0 or more")
        for name, count in (("quorum", self.quorum), ("min-overlap", self.min_overlap)):
            if count < 1:
                problem = f"{count} people cannot agree"
                raise InvalidSettingError(name, problem, "Give 1 or more")
        for name, share in (("same-fault", self.same_fault), ("sure", self.sure)):
            if not 0 < share < 1:
                problem = f"{share} is no share"
                raise InvalidSettingError(name, problem, "Give a number between 0 and 1")


Dissent = tuple[str, AnyValue]
"""Who said otherwise, and what."""


class TaskSettlementMethod(StrEnum):
    """Method by which the consensus of a task was found: majority, mean, weighting or a review."""

    MAJORITY = "majority"
    ROUNDED_MEAN = "rounded-mean"
    DAWID_SKENE = "dawid-skene"
    REVIEW = "review"
    """A reviewer took one annotator's word."""


class NoConsensusReason(StrEnum):
    """Reason why a task has no consensus. The values are stored: add, never rename."""

    TOO_FEW = "too-few-judged"
    TIE = "no-majority"
    NO_QUORUM = "no-quorum"
    NO_COMMON_FAULT = "no-common-fault"
    """People agree that the clip is generated, and not on any fault of it."""
    UNSURE = "not-sure-enough"
    SENT_BACK = "sent-back"
    """A reviewer asked for it to be judged again."""
    NOT_REVIEWED = "not-reviewed"
    """Something would stand, and fewer reviewers than the rule wants have looked at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledTask:
    """Consensus of one task: the answer, and the annotators who agree and who dissent."""

    value: AnyValue
    support: tuple[str, ...]
    """People who said this, by name; for traces, who marked one of the faults that stand."""
    dissent: tuple[Dissent, ...] = ()
    """Kept and shown: other answers, and faults that too few people marked."""
    method: TaskSettlementMethod
    words_of: str = ""
    """Author of the rationale or explanation in `value`; "" if there is none, or for several
    faults.
    """
    backing: tuple[tuple[str, ...], ...] = ()
    """For traces: who marked each of the value's faults, in their order."""
    p_right: float | None = None
    """How likely the answer is by Dawid-Skene, where that was asked."""
    accepted_by: tuple[str, ...] = ()
    """Reviewers who looked at this very value and let it stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTask:
    """Task without a consensus: the reason, and all judgements."""

    why: NoConsensusReason
    detail: str
    judgements: tuple[Dissent, ...]
    """All judgements, by name."""
    proposed: SettledTask | None = None
    """What would stand once enough reviewers accept it."""


Outcome = SettledTask | OpenTask


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignConsensus:
    """Consensus of all judged tasks of a campaign."""

    interface: AnnotationInterface
    rule: ConsensusRule
    tasks: Mapping[str, Outcome]
    """By the task's id, in the order of ids."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """By annotator, the share of right answers that Dawid-Skene reckons with; empty for majorities."""
    notes: tuple[str, ...] = ()
    """Whether people were weighed and which pairs count as one voice, as sentences; for Dawid-Skene."""

    @property
    def settled(self) -> Mapping[str, SettledTask]:
        """Return the tasks that have a consensus, by task id."""
        return {id_: task for id_, task in self.tasks.items() if isinstance(task, SettledTask)}

    @property
    def unsettled(self) -> Mapping[str, OpenTask]:
        """Return the tasks without a consensus, by task id."""
        return {id_: task for id_, task in self.tasks.items() if isinstance(task, OpenTask)}
