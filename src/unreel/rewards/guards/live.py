"""Guards of a running reward service: Prometheus metrics, and the reason to refuse requests."""

import logging
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from unreel.core.estimate import Estimate
from unreel.rewards.guards.evaluate import evaluate_guards_on_steps
from unreel.rewards.guards.result import MEANINGS, GuardResult, KnownEvidence, RewardGuardLimits
from unreel.rewards.guards.training_steps import (
    LogRow,
    TrainingStepCollector,
    parse_reward_log_line,
)

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_LOG = logging.getLogger(__name__)
_STOPPED = "requests are refused. Start with another --log, or without this --stop-on, to continue"
_GAUGES = {
    "alarm": "1 if the guard raised an alarm.",
    "evidence": "Evidence as a fraction of the alarm's, both as logarithms.",
    "estimate": "Quantity that the guard estimates.",
}


class LiveRewardGuards:
    """Guards that monitor the log of a reward service, from its first row and as it grows.

    They read the log file, so that alarms survive a restart, and replicas with one log share alarms.

    Args:
        log: Existing log file.
        registry: Gets the gauges `unreel_reward_guard_alarm`, `..._evidence` and `..._estimate`, by guard.
        stop_on: Names of guards whose alarm is a reason to refuse requests, or `any`.
        limits: Limits of the guards.
    """

    def __init__(
        self,
        log: Path,
        registry: "CollectorRegistry",
        stop_on: Collection[str] = (),
        limits: RewardGuardLimits | None = None,
    ) -> None:
        from prometheus_client import Gauge

        self._stop_on = frozenset(MEANINGS if "any" in stop_on else stop_on)
        self._settings = limits or RewardGuardLimits()
        self._file = log.open("rb")
        self._collector, self._n_steps = TrainingStepCollector(), 0
        self._gauges = {
            name: Gauge(f"unreel_reward_guard_{name}", text, ("guard",), registry=registry)
            for name, text in _GAUGES.items()
        }
        self._alarms: dict[str, str] = {}
        self._known: KnownEvidence = {}

    def update(self) -> str | None:
        """Read new rows and log alarms; return why to refuse from the first alarm in `stop_on` on, else `None`."""
        self._collector.add(self._iter_new_rows())
        if self._collector.n_complete != self._n_steps:
            self._n_steps = self._collector.n_complete
            # Closed steps never change, so their evidence is cached; other steps may get rows.
            evaluate_guards_on_steps(self._collector.closed, self._settings, self._known)
            steps = self._collector.finish()
            results = evaluate_guards_on_steps(steps, self._settings, self._known.copy())
            for result in results:
                if result.alarm and result.guard not in self._alarms:
                    self._alarms[result.guard] = format_guard_alarm(result)
                    _LOG.warning("unreel reward: alarm: %s", self._alarms[result.guard])
                    if result.guard in self._stop_on:
                        _LOG.warning("unreel reward: %s", _STOPPED)
            self._export(results)
        return (
            "; ".join(self._alarms[name] for name in self._alarms if name in self._stop_on) or None
        )

    def close(self) -> None:
        """Close the log file."""
        self._file.close()

    def _iter_new_rows(self) -> Iterator[LogRow]:
        while line := self._file.readline():
            if not line.endswith(b"\n"):  # incomplete: it is still being written
                self._file.seek(-len(line), os.SEEK_CUR)
                return
            row = parse_reward_log_line(line)
            if row is not None:
                yield row

    def _export(self, results: tuple[GuardResult, ...]) -> None:
        for result in results:
            self._gauges["alarm"].labels(result.guard).set(result.guard in self._alarms)
            fraction = result.log_evidence / result.log_threshold
            self._gauges["evidence"].labels(result.guard).set(fraction)
            if isinstance(result.estimate, Estimate):
                self._gauges["estimate"].labels(result.guard).set(result.estimate.value)


def format_guard_alarm(result: GuardResult) -> str:
    """Return one line that describes the alarm of a guard."""
    return f"guard {result.guard}, step {result.alarm_step}: {result.meaning}: {result.estimate}"
