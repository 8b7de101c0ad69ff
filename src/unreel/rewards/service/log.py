"""Log of the reward service in JSON Lines, and its Prometheus metrics.

The row of a scored item is written before the reply. Facts and the held-out reward of a new clip follow
when they are measured, in a row whose `measured` is the reward id.
"""

import errno
import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram

from unreel.core.output_files import OutputDirectory
from unreel.rewards.service.request_items import ItemReward, RewardRequestItem

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)


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
    """Log file of rewards, opened for appending.

    A row is there for other processes when `append` returns; a power failure may lose the last ones.
    """

    def __init__(self, path: Path) -> None:
        self._file = OutputDirectory(path.parent).append(path.name)
        self._before = b""
        """End of an incomplete line of a full disk, so that the next row has a line of its own."""

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append a line for each row, all with one call.

        Raises:
            OSError: The disk does not take all of it.
        """
        time = {"time": datetime.now(UTC).isoformat()}
        data = self._before + b"".join(json.dumps(time | {**row}).encode() + b"\n" for row in rows)
        if os.write(self._file.fileno(), data) < len(data):
            self._before = b"\n"
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._before = b""

    def close(self) -> None:
        """Close the log file."""
        self._file.close()


def build_log_row(
    item: RewardRequestItem, result: ItemReward, canary: str | None = None
) -> dict[str, Any]:
    """Return the row of an item; its facts and held-out reward are not measured yet."""
    reward = result.reward
    return {
        "step": item.step,
        "group": item.group,
        "reward_id": result.reward_id,
        "content": result.content,
        "value": reward.value,
        "parts": dict(reward.parts),
        "failure": reward.failure and reward.failure.reason.value,
        "held_out": None,
        "facts": None,
        "canary": canary,
        "cached": result.cached,
    }
