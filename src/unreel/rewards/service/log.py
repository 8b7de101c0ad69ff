"""Log of rewards: one JSON line for each scored item."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unreel.core.output_files import OutputDirectory
from unreel.rewards.service.items import ItemReward, RewardItem


class RewardLog:
    """File that rewards are appended to; each line is written with one call."""

    def __init__(self, path: Path) -> None:
        self._file = OutputDirectory(path.parent).append(path.name)

    def append(
        self,
        item: RewardItem,
        result: ItemReward,
        *,
        facts: Mapping[str, Any] | None,
        held_out: float | None,
        canary: str | None = None,
    ) -> None:
        """Write one line."""
        reward = result.reward
        line = {
            "time": datetime.now(UTC).isoformat(),
            "step": item.step,
            "group": item.group,
            "reward_id": result.reward_id,
            "content": result.content,
            "value": reward.value,
            "parts": dict(reward.parts),
            "failure": reward.failure and reward.failure.reason.value,
            "held_out": held_out,
            "facts": facts,
            "canary": canary,
            "cached": result.cached,
        }
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
