"""Guards of a running service: Prometheus metrics, and the reason to stop."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from unreel.core.errors import UnknownNameError
from unreel.core.estimate import Estimate
from unreel.rewards.guards.evaluate import GuardMonitor
from unreel.rewards.guards.result import MEANINGS, GuardResult, GuardSettings
from unreel.rewards.guards.steps import LogRow

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


class LiveGuards:
    """Guards that check the rows that a service logs. All methods must be called from one thread.

    Args:
        registry: Gets the gauges `unreel_reward_guard_alarm`, `..._evidence` and `..._estimate`,
            by guard.
        stop_on: Names of guards whose alarm is a reason to stop, or `any`.
        settings: Limits of the guards.

    Raises:
        UnknownNameError: A name in `stop_on` is not the name of a guard.
    """

    def __init__(
        self,
        registry: "CollectorRegistry",
        stop_on: Collection[str] = (),
        settings: GuardSettings | None = None,
    ) -> None:
        from prometheus_client import Gauge

        for name in stop_on:
            if name not in {*MEANINGS, "any"}:
                kind = "guard"
                raise UnknownNameError(kind, name, [*MEANINGS, "any"])
        self._stop_on = frozenset(MEANINGS if "any" in stop_on else stop_on)
        self._monitor = GuardMonitor(settings)
        texts = {
            "alarm": "1 if the guard raises an alarm.",
            "evidence": "Evidence as a fraction of the alarm's, both as logarithms.",
            "estimate": "Quantity that the guard estimates.",
        }
        self._gauges = {
            name: Gauge(f"unreel_reward_guard_{name}", text, ("guard",), registry=registry)
            for name, text in texts.items()
        }
        self.results: tuple[GuardResult, ...] = ()

    def add(self, row: LogRow) -> str | None:
        """Add a row of the log, and return the reason to stop; `None` if there is none."""
        self._monitor.add([row])
        results = self._monitor.evaluate()
        if results is not self.results:
            self.results = results
            self._export(results)
        alarms = [each for each in results if each.alarm and each.guard in self._stop_on]
        return "; ".join(map(format_alarm, alarms)) or None

    def _export(self, results: tuple[GuardResult, ...]) -> None:
        for result in results:
            self._gauges["alarm"].labels(result.guard).set(result.alarm)
            share = result.log_evidence / result.log_threshold
            self._gauges["evidence"].labels(result.guard).set(share)
            if isinstance(result.estimate, Estimate):
                self._gauges["estimate"].labels(result.guard).set(result.estimate.value)


def format_alarm(result: GuardResult) -> str:
    """Return one line about an alarm."""
    return f"guard {result.guard}, step {result.alarm_step}: {result.meaning}: {result.estimate}"
