"""Rewards as JSON, for replies and for the cache."""

from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from unreel.core.failure import Failure
from unreel.rewards.result import Reward


@dataclass(frozen=True, slots=True)
class ScoredClip:
    """Reward of a clip with its verdicts as JSON, in the form of the cache."""

    reward: Reward
    verdicts: list[dict[str, Any]] = field(default_factory=list)


_SCORED: Final = TypeAdapter(ScoredClip)


def format_verdicts(reward: Reward) -> list[dict[str, Any]]:
    """Return the verdicts of a reward as JSON."""
    return [
        {
            "reviewer": verdict.reviewer,
            "protocol": verdict.protocol,
            **(
                {"failure": format_failure(verdict.outcome)}
                if isinstance(verdict.outcome, Failure)
                else {"verdict": to_jsonable_python(verdict.outcome)}
            ),
        }
        for verdict in reward.verdicts
    ]


def format_failure(failure: Failure) -> dict[str, str]:
    """Return a failure as JSON."""
    return {"reason": failure.reason.value, "message": f"{failure.detail}. {failure.reason.remedy}"}


def format_document(scored: ScoredClip) -> str:
    """Return a reward for storage; `read_document` is the inverse."""
    return _SCORED.dump_json(replace(scored, reward=replace(scored.reward, verdicts=()))).decode()


def read_document(document: str) -> ScoredClip:
    """Return the reward that `format_document` stored."""
    return _SCORED.validate_json(document)
