"""Prometheus metrics of a reward service."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

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
