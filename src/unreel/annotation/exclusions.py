"""Leaving an annotator's judgements out of a campaign, and taking them in again."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unreel.annotation.campaign_state import iter_valid_judgements, read_campaign
from unreel.annotation.ledger.decisions import EXCLUSION, INCLUSION
from unreel.core.errors import InvalidSettingError, UnknownNameError

if TYPE_CHECKING:  # heavy
    from unreel.annotation.ledger.ledger import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusionDecision:
    """Decision whether an annotator's judgements count in a campaign."""

    campaign: str
    annotator: str
    counts: bool
    why: str
    by: str
    at_us: int

    def __post_init__(self) -> None:
        if not self.why.strip():
            setting, problem = "--why", "a decision about a person needs its reason"
            raise InvalidSettingError(setting, problem, "Say it in a few words")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusionEffect:
    """Change of an annotator's exclusion, with its effect."""

    campaign: str
    annotator: str
    counts: bool
    n_before: int
    """Judgements of the campaign that counted before."""
    n_now: int


def let_count(ledger: "Ledger", decision: ExclusionDecision) -> ExclusionEffect:
    """Record whether an annotator's judgements count; the judgements are not changed.

    Raises:
        UnknownNameError: The campaign has no annotator of that name.
    """
    campaign, annotator = decision.campaign, decision.annotator
    before = read_campaign(ledger, campaign)
    known = {name for name, _ in (*before.assignments, *before.standing)}
    if annotator not in known:
        kind = f"annotator of {campaign}"
        raise UnknownNameError(kind, annotator, sorted(known))
    kind = INCLUSION if decision.counts else EXCLUSION
    ledger.notice(campaign, kind, annotator, decision.by, decision.why, decision.at_us)
    now = read_campaign(ledger, campaign)
    return ExclusionEffect(
        campaign=campaign,
        annotator=annotator,
        counts=annotator not in now.excluded,
        n_before=sum(1 for _ in iter_valid_judgements(before)),
        n_now=sum(1 for _ in iter_valid_judgements(now)),
    )
