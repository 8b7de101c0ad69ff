"""Evaluation of all guards on the steps of a reward log: held-out reward, drift, and fractions."""

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from unreel.rewards.guards.result import (
    RATES,
    GuardResult,
    KnownEvidence,
    RewardGuardLimits,
    build_guard_result,
    build_unmeasured_guard_result,
)
from unreel.rewards.guards.training_steps import (
    FACTS,
    LogRow,
    StepFactSummary,
    TrainingStepCollector,
    TrainingStepSummary,
)
from unreel.stats.row_sample import Array
from unreel.stats.sequential_tests import (
    SequentialTestEvidence,
    combine_restarted_tests,
    compute_fraction_evidence,
    compute_mean_evidence,
    compute_trend_evidence,
    estimate_fraction_interval,
    estimate_mean_interval,
    estimate_trend_interval,
)

_MIN_STEPS = 3


def evaluate_guards_on_log(
    rows: Iterable[LogRow], limits: RewardGuardLimits | None = None
) -> tuple[GuardResult, ...]:
    """Return the result of each guard on the complete training steps of a reward log."""
    collector = TrainingStepCollector()
    collector.add(rows)
    return evaluate_guards_on_steps(collector.finish(), limits or RewardGuardLimits())


def evaluate_guards_on_steps(
    steps: Sequence[TrainingStepSummary],
    limits: RewardGuardLimits,
    known: KnownEvidence | None = None,
) -> tuple[GuardResult, ...]:
    """Return the result of each guard on summarised training steps."""
    known = {} if known is None else known
    return (
        evaluate_held_out_guard(steps, limits, known),
        *(evaluate_drift_guard(guard, steps, limits, known) for guard in FACTS),
        *(evaluate_rate_guard(guard, steps, limits, known) for guard in RATES),
    )


def evaluate_held_out_guard(
    steps: Sequence[TrainingStepSummary], limits: RewardGuardLimits, known: KnownEvidence
) -> GuardResult:
    """Evaluate the guard `held-out`: alarm if the trained reward rises and the held-out reward falls.

    Both rewards are of the same clips. The evidence since a step is the smaller of the evidence for
    the rise and for the fall. So the false-alarm rate is kept if the trained reward does not rise, and
    also if the held-out reward does not fall.
    """
    paired = [step for step in steps if step.n_paired]
    if len(paired) < _MIN_STEPS:
        why = "fewer than 3 complete steps have trained and held-out rewards"
        return build_unmeasured_guard_result("held-out", why, limits, n_steps=len(paired))
    value = np.array([step.value for step in paired], np.float64)
    held_out = np.array([step.held_out for step in paired], np.float64)

    def weigh(part: slice) -> Array:
        rise = part.step or 1  # in reverse order, a rise is a fall
        falls = compute_trend_evidence(held_out[part], -rise, min_change=limits.held_out_fall)
        return np.minimum(compute_trend_evidence(value[part], rise), falls)

    return build_guard_result(
        "held-out",
        _update_evidence("held-out", len(paired), weigh, known),
        lambda part, alpha: estimate_trend_interval(held_out[part], alpha),
        sizes=[(step.step, step.n_paired) for step in paired],
        limit=0.0,
        limits=limits,
    )


def evaluate_drift_guard(
    guard: str,
    steps: Sequence[TrainingStepSummary],
    limits: RewardGuardLimits,
    known: KnownEvidence,
) -> GuardResult:
    """Evaluate a drift guard: alarm if the mean of a clip fact moves away from the first steps."""
    measured = [step for step in steps if guard in step.facts]
    first, later = measured[: limits.reference_steps], measured[limits.reference_steps :]
    if len(later) < _MIN_STEPS:
        why = f"fewer than 3 complete steps after the first {limits.reference_steps}"
        return build_unmeasured_guard_result(guard, why, limits, n_steps=len(measured))
    mean, sd = _pool_fact_summaries([step.facts[guard] for step in first])
    shifts = np.array([step.facts[guard].mean - mean for step in later]) / max(sd, FACTS[guard][1])
    limit = limits.drift_sd

    def weigh(part: slice) -> Array:
        up, down = (compute_mean_evidence(sign * shifts[part], limit, 1) for sign in (1, -1))
        return np.logaddexp(up, down) - math.log(2)

    return build_guard_result(
        guard,
        _update_evidence(guard, len(later), weigh, known),
        lambda part, alpha: estimate_mean_interval(shifts[part], alpha / 2),
        sizes=[(step.step, step.facts[guard].n) for step in later],
        limit=math.copysign(limit, shifts.sum()),
        limits=limits,
    )


def evaluate_rate_guard(
    guard: str,
    steps: Sequence[TrainingStepSummary],
    limits: RewardGuardLimits,
    known: KnownEvidence,
) -> GuardResult:
    """Evaluate a rate guard: alarm if the mean of the fraction that it counts is above its limit."""
    counts = [(step.step, *step.counts[guard]) for step in steps if step.counts[guard][1]]
    if not counts:
        return build_unmeasured_guard_result(
            guard, "no complete step has such items", limits, n_steps=0
        )
    fractions = np.array([count / n for _, count, n in counts])
    limit = limits.rates[guard]

    def weigh(part: slice) -> Array:
        return compute_fraction_evidence(fractions[part], limit)

    return build_guard_result(
        guard,
        _update_evidence(guard, len(counts), weigh, known),
        lambda part, alpha: estimate_fraction_interval(fractions[part], alpha),
        sizes=[(step, n) for step, _, n in counts],
        limit=limit,
        limits=limits,
    )


def _update_evidence(
    guard: str, n: int, weigh: Callable[[slice], Array], known: KnownEvidence
) -> SequentialTestEvidence:
    known[guard] = combine_restarted_tests(n, weigh, known.get(guard))
    return known[guard]


def _pool_fact_summaries(summaries: Sequence[StepFactSummary]) -> tuple[float, float]:
    """Return the mean and the standard deviation of one fact over all clips of several steps."""
    n = sum(part.n for part in summaries)
    mean = sum(part.n * part.mean for part in summaries) / n
    squares = sum(part.squares + part.n * (part.mean - mean) ** 2 for part in summaries)
    return mean, math.sqrt(squares / max(1, n - 1))
