"""Rewards as JSON, for replies and for the cache."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_jsonable_python

from unreel.core.failure import Failure
from unreel.rewards.result import FORMULA, Reward, RewardMap, read_map


@dataclass(frozen=True, slots=True)
class ScoredClip:
    """Reward of a clip with its verdicts as JSON, in the form of the cache."""

    reward: Reward
    verdicts: list[dict[str, Any]] = field(default_factory=list)


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


def format_document(scored: ScoredClip) -> dict[str, Any]:
    """Return a reward for storage; `read_document` is the inverse."""
    reward = scored.reward
    return {
        "value": reward.value,
        "parts": dict(reward.parts),
        "calibrated": reward.calibrated,
        "formula": reward.formula,
        "map": reward.map and reward.map.to_json(),
        "verdicts": scored.verdicts,
    }


def read_document(document: Mapping[str, Any]) -> ScoredClip:
    """Return the reward that `format_document` stored."""
    stored: RewardMap | None = document["map"] and read_map(document["map"])
    reward = Reward(
        value=document["value"],
        parts=document["parts"],
        calibrated=document["calibrated"],
        formula=document.get("formula", FORMULA),
        map=stored,
    )
    return ScoredClip(reward, document["verdicts"])
