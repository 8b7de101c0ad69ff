"""Result of one call that runs a season."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPlan:
    """Questions that fit the budget, in order, and the number of postponed questions by reviewer."""

    seed: int
    basis: str
    """Hash of the inputs; equal entrants, clips and budget give the same plan."""
    n_due: int
    """Number of questions without an answer when the plan was made."""
    chosen: tuple[tuple[str, str, str], ...]
    """Reviewer, condition and clip of each selected question, most informative first."""
    left: Mapping[str, int] = field(default_factory=dict)
    """Number of questions that are not sent, by reviewer."""

    def questions_of(self, reviewer: str) -> frozenset[tuple[str, str]]:
        """Return the condition and the clip of each planned question for `reviewer`."""
        return frozenset((how, clip) for who, how, clip in self.chosen if who == reviewer)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrantRunSummary:
    """Result of one call of `run_season` for one creator or reviewer."""

    title: str
    done: int = 0
    already: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)
    """Number of new failures, by reason."""
    failed_before: int = 0
    """Number of clips or answers that failed in an earlier call and were not retried."""
    missing_files: tuple[str, ...] = ()
    """Files that are missing in a creator's folder."""
    problem: str = ""
    """Reason why the entrant cannot take part, for example no usable clip; "" if it can."""

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
    """Number of benchmark rows that cannot be used."""
    plan: QuestionPlan | None
    """Selected questions if the budget is too small for all; otherwise `None`."""
    cost_usd: Decimal | None
    """Reported cost of all clips and answers so far; `None` if none is reported."""

    @property
    def n_failed(self) -> int:
        """Return the number of failures in this call and earlier calls, plus entrants that could not run."""
        turns = (*self.creators, *self.reviewers)
        return sum(turn.n_failed + bool(turn.problem) for turn in turns)

    @property
    def is_stopped(self) -> bool:
        """Return whether the run of a season stopped before any question, because a creator has a problem."""
        return any(turn.problem for turn in self.creators)
