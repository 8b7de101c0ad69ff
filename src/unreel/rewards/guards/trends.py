"""Guards over means of steps: the held-out reward, and drift of the clips."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from unreel.rewards.guards.result import GuardResult, GuardSettings, conclude, unmeasured_guard
from unreel.rewards.guards.steps import FACTS, FactSummary, StepSummary
from unreel.stats.sample import Array
from unreel.stats.sequential import (
    combine_restarted_tests,
    compute_mean_evidence,
    compute_trend_evidence,
    estimate_mean_interval,
    estimate_trend_interval,
)

LEAST_SD: Final = {
    "motion": 1.0,
    "saturation": 0.02,
    "sharpness": 0.5,
    "duration": 0.1,
    "static": 0.05,
}
"""Smallest standard deviation that drift is counted in, so that equal clips are no infinite precision:
grey levels, fraction, grey levels, seconds, fraction."""
_LEAST_STEPS: Final = 3


def watch_held_out(steps: Sequence[StepSummary], settings: GuardSettings) -> GuardResult:
    """Raise an alarm if the trained reward rises while the held-out reward of the same clips falls.

    Evidence from a start is the smaller of that for the rise and that for the fall. So the false-alarm rate holds
    if the trained reward does not rise, and it holds if the held-out reward does not fall.
    """
    paired = [step for step in steps if step.n_paired]
    if len(paired) < _LEAST_STEPS:
        why = "fewer than 3 complete steps have trained and held-out rewards"
        return unmeasured_guard("held-out", why, settings, n_steps=len(paired))
    value = np.array([step.value for step in paired], np.float64)
    held_out = np.array([step.held_out for step in paired], np.float64)

    def weigh(start: int) -> Array:
        falls = compute_trend_evidence(held_out[start:], -1, least=settings.held_out_fall)
        return np.minimum(compute_trend_evidence(value[start:], 1), falls)

    return conclude(
        "held-out",
        combine_restarted_tests(len(paired), weigh),
        lambda part, alpha: estimate_trend_interval(held_out[part], alpha),
        sizes=[(step.step, step.n_paired) for step in paired],
        limit=0.0,
        settings=settings,
    )


def watch_drift(guard: str, steps: Sequence[StepSummary], settings: GuardSettings) -> GuardResult:
    """Raise an alarm if the mean of a fact leaves the range of the first steps, upwards or downwards."""
    measured = [step for step in steps if guard in step.facts]
    first, later = measured[: settings.reference_steps], measured[settings.reference_steps :]
    if len(later) < _LEAST_STEPS:
        why = f"fewer than 3 complete steps after the first {settings.reference_steps}"
        return unmeasured_guard(guard, why, settings, n_steps=len(measured))
    mean, sd = _pool_fact_summaries([step.facts[guard] for step in first])
    shifts = np.array([step.facts[guard].mean - mean for step in later]) / max(sd, LEAST_SD[guard])
    limit = settings.drift_sd

    def weigh(start: int) -> Array:
        up, down = (compute_mean_evidence(sign * shifts[start:], limit, 1) for sign in (1, -1))
        return np.logaddexp(up, down) - math.log(2)

    return conclude(
        guard,
        combine_restarted_tests(len(later), weigh),
        lambda part, alpha: estimate_mean_interval(shifts[part], alpha / 2),
        sizes=[(step.step, step.facts[guard].n) for step in later],
        limit=math.copysign(limit, shifts.sum()),
        settings=settings,
    )


def watch_all_drift(
    steps: Sequence[StepSummary], settings: GuardSettings
) -> tuple[GuardResult, ...]:
    """Return the result of each guard of drift."""
    return tuple(watch_drift(guard, steps, settings) for guard in FACTS)


def _pool_fact_summaries(parts: Sequence[FactSummary]) -> tuple[float, float]:
    """Return mean and standard deviation of all clips of several steps."""
    n = sum(part.n for part in parts)
    mean = sum(part.n * part.mean for part in parts) / n
    squares = sum(part.squares + part.n * (part.mean - mean) ** 2 for part in parts)
    return mean, math.sqrt(squares / max(1, n - 1))
