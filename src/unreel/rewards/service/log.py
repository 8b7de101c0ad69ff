"""Log of the reward service, one JSON line for each scored item, and its Prometheus metrics."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from unreel.core.output_files import OutputDirectory
from unreel.rewards.service.request_items import ItemReward, RewardRequestItem

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS: Final = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)


class RewardServiceMetrics:
    """Prometheus counters of a reward service; other modules add their metrics to `registry`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.items = Counter(
            "unreel_reward_items",
            "Scored items by outcome: value, or the reason of the failure.",
            ("outcome", "cached"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "unreel_reward_seconds",
            "Time of a scoring request in seconds.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.refused = Counter(
            "unreel_reward_refused", "Refused requests.", ("reason",), registry=self.registry
        )


class RewardLog:
    """Log file of rewards, opened for appending; each line is written with one call."""

    def __init__(self, path: Path) -> None:
        self._file = OutputDirectory(path.parent).append(path.name)

    def append(
        self,
        item: RewardRequestItem,
        result: ItemReward,
        *,
        facts: Mapping[str, Any] | None,
        held_out: float | None,
        canary: str | None = None,
    ) -> None:
        """Append one line with the reward of an item, and the facts and held-out reward of its clip."""
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
        """Close the log file."""
        self._file.close()
