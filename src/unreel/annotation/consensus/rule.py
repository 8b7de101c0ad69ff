"""The knobs of a consensus."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from unreel.core.errors import InvalidSettingError

SAME_FAULT: Final = 0.2
"""Tube IoU from which two marks mean the same fault: in a consensus, in agreement and on known clips."""


class ConsensusMethod(StrEnum):
    """Method that combines several answers to one question."""

    MAJORITY = "majority"
    """Everybody counts the same."""
    DAWID_SKENE = "dawid-skene"
    """Everybody counts by how they were seen to answer over all tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusRule:
    """When people agree enough."""

    quorum: int = 2
    """How many people must say the same, or mark the same fault."""
    min_overlap: int = 2
    """How many people must have judged a task before it is settled at all."""
    method: ConsensusMethod = ConsensusMethod.MAJORITY
    same_fault: float = SAME_FAULT
    sure: float = 0.5
    """How likely Dawid-Skene's answer must be for the task to be settled; at most so likely is not enough."""

    reviews: int = 0
    """How many people who did not judge a task must have accepted what stands for it."""

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
