"""Evaluation of all guards over a reward log, at once or as rows arrive."""

from collections.abc import Iterable, Sequence

from unreel.rewards.guards.rates import watch_canaries, watch_rate
from unreel.rewards.guards.result import GuardResult, GuardSettings
from unreel.rewards.guards.steps import LogRow, StepCollector, StepSummary
from unreel.rewards.guards.trends import watch_all_drift, watch_held_out


def evaluate_guards(
    rows: Iterable[LogRow], settings: GuardSettings | None = None
) -> tuple[GuardResult, ...]:
    """Return the result of each guard over the complete steps of a log, in any order of its rows."""
    collector = StepCollector(keep_open=True)
    collector.add(rows)
    return evaluate_steps(collector.finish(), settings or GuardSettings())


def evaluate_steps(
    steps: Sequence[StepSummary], settings: GuardSettings
) -> tuple[GuardResult, ...]:
    """Return the result of each guard over summarised steps."""
    return (
        watch_held_out(steps, settings),
        *watch_all_drift(steps, settings),
        watch_rate("text", steps, settings),
        watch_rate("duplicates", steps, settings),
        watch_canaries(steps, settings),
        watch_rate("identical", steps, settings),
        watch_rate("nulls", steps, settings),
    )


class GuardMonitor:
    """Guards over a log that grows. Rows are summarised by step, and results are computed once for each step."""

    def __init__(self, settings: GuardSettings | None = None) -> None:
        self._settings = settings or GuardSettings()
        self._collector = StepCollector()
        self._n_steps = -1
        self._results: tuple[GuardResult, ...] = ()

    def add(self, rows: Iterable[LogRow]) -> None:
        """Add rows in the order in which they are scored."""
        self._collector.add(rows)

    def evaluate(self) -> tuple[GuardResult, ...]:
        """Return the result of each guard over the complete steps so far."""
        n_steps = self._collector.n_complete
        if n_steps != self._n_steps:
            self._n_steps = n_steps
            self._results = evaluate_steps(self._collector.finish(), self._settings)
        return self._results
