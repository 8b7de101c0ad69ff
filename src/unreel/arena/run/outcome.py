"""Result of one call that runs a season."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # its module needs an extra
    from unreel.arena.run.question_plan import QuestionPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrantRunSummary:
    """Result of one call of `run_season` for one creator or reviewer."""

    title: str
    done: int = 0
    already: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)
    """New failures, by reason."""
    failed_before: int = 0
    """Clips or answers that failed in an earlier call and were not retried."""
    missing_files: tuple[str, ...] = ()
    """Files that are missing in a creator's folder."""
    problem: str = ""
    """Why no request was possible; "" if requests were possible."""

    @property
    def n_failed(self) -> int:
        """Return the number of clips or answers that failed in this call or an earlier call."""
        return sum(self.failures.values()) + self.failed_before


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonOutcome:
    """Result of one call of `run_season`."""

    season: str
    folder: str
    digest: str
    creators: tuple[EntrantRunSummary, ...]
    reviewers: tuple[EntrantRunSummary, ...]
    n_rejected: int
    """Rows of the benchmark that cannot be used."""
    plan: "QuestionPlan | None"
    """The selected questions, if the budget is too small for all."""
    cost_usd: Decimal | None
    """Reported cost of all clips and answers so far."""

    @property
    def n_failed(self) -> int:
        """Return the number of failures in this call and earlier calls, plus entrants that could not run."""
        turns = (*self.creators, *self.reviewers)
        return sum(turn.n_failed + bool(turn.problem) for turn in turns)

    @property
    def is_stopped(self) -> bool:
        """Return whether the run of a season stopped before any question, because a creator has a problem."""
        return any(turn.problem for turn in self.creators)
