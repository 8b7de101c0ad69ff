"""Settings and results of the guards against reward hacking."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.stats.sequential_tests import Interval, SequentialTestEvidence, compute_log_start_weight

_DRIFT = "shift of the mean, in standard deviations of the first steps' clips"
MEANINGS = {
    "held-out": "change of the held-out reward since that step, while the trained reward rises",
    "motion": _DRIFT,
    "saturation": _DRIFT,
    "sharpness": _DRIFT,
    "duration": _DRIFT,
    "static": _DRIFT,
    "text": "fraction of clips with text that addresses the judge",
    "duplicates": "fraction of clips that repeat another clip of their step",
    "canaries": "fraction of pairs in which the injected canary is not below the clean one",
    "identical": "fraction of groups in which all rewards are equal",
    "nulls": "fraction of items without a reward",
}
"""Description of the estimate of each guard. The guards share the false-alarm rate of a run equally."""
RATES = {
    "text": 0.01,
    "duplicates": 0.2,
    "canaries": 0.25,  # a reward that ignores the injected traces inverts half of the pairs
    "identical": 0.5,
    "nulls": 0.05,
}

KnownEvidence = dict[str, SequentialTestEvidence]
"""Evidence of earlier steps, by guard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardGuardLimits:
    """Limits of the guards: values of clips and rewards beyond which a guard raises an alarm."""

    alpha: float = 0.05
    """Maximum probability of a false alarm in a run, over all guards and all evaluations."""
    held_out_fall: float = 0.05
    """Minimum fall of the held-out reward, from 0 to 1, for an alarm, because policies vary a little."""
    reference_steps: int = 5
    """Number of first steps of the run whose clips are the reference for drift."""
    drift_sd: float = 2.0
    """Tolerated shift of a mean, in standard deviations of the reference clips. At 2, the mean clip would be
    among the 2.3 percent most extreme clips of the reference, if those are normal."""
    rates: Mapping[str, float] = field(default_factory=RATES.copy)
    """Tolerated fractions of the other guards, by guard."""

    @property
    def guard_alpha(self) -> float:
        """Return the false-alarm rate of each single guard over a run."""
        return self.alpha / len(MEANINGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardResult:
    """Result of one guard on the training steps of a log: alarm, estimate and evidence."""

    guard: str
    alarm: bool
    estimate: Measured
    """Estimated quantity with its interval, as of the step of the alarm or else the last step."""
    log_threshold: float
    """Logarithm of the evidence at which an alarm is raised."""
    n_steps: int
    """Number of complete steps with data for this guard."""
    limit: float = 0.0
    """Value of the estimate that the alarm excludes."""
    log_evidence: float = 0.0
    """Largest logarithm of the evidence so far; 0 at the start."""
    since_step: int | None = None
    """First step of the estimate."""
    alarm_step: int | None = None
    """Step at which the alarm was raised."""
    meaning: str = ""
    """Description of the estimate."""


def build_unmeasured_guard_result(
    guard: str, why: str, limits: RewardGuardLimits, *, n_steps: int
) -> GuardResult:
    """Build the result of a guard with too little data; `why` is the reason."""
    return GuardResult(
        guard=guard,
        alarm=False,
        estimate=Unmeasured(why),
        log_threshold=-math.log(limits.guard_alpha),
        n_steps=n_steps,
    )


def build_guard_result(
    guard: str,
    mixed_evidence: SequentialTestEvidence,
    enclose: Callable[[slice, float], Interval],
    *,
    sizes: Sequence[tuple[int, int]],
    limit: float,
    limits: RewardGuardLimits,
) -> GuardResult:
    """Build the result of a guard from its evidence after each step.

    Args:
        guard: Name of the guard.
        mixed_evidence: Evidence after each step.
        enclose: Function that returns the value and interval of the steps in a slice, at a level alpha.
        sizes: Step number and number of rows of each step.
        limit: Value of the estimate that an alarm excludes.
        limits: Limits of the guards.
    """
    log_threshold = -math.log(limits.guard_alpha)
    alarm_at = mixed_evidence.first_above(log_threshold)
    at = len(sizes) - 1 if alarm_at is None else alarm_at
    start = 0 if alarm_at is None else mixed_evidence.starts[alarm_at]
    alpha = limits.guard_alpha * math.exp(compute_log_start_weight(start))
    value, low, high = enclose(slice(start, at + 1), alpha)
    estimate: Measured = Unmeasured("too few steps for an interval")
    if low == high and alarm_at is None:
        estimate = Unmeasured("the value is the same in each step, so it has no interval")
    elif math.isfinite(low + high):
        n = sum(n_rows for _, n_rows in sizes[start : at + 1])
        level, n_steps = 1 - alpha, at + 1 - start
        estimate = Estimate(value=value, low=low, high=high, n=n, n_clusters=n_steps, level=level)
    return GuardResult(
        guard=guard,
        alarm=alarm_at is not None,
        estimate=estimate,
        limit=limit,
        log_evidence=max(0.0, float(mixed_evidence.log_evidence.max())),
        log_threshold=log_threshold,
        n_steps=len(sizes),
        since_step=sizes[start][0],
        alarm_step=None if alarm_at is None else sizes[alarm_at][0],
        meaning=MEANINGS[guard],
    )
