"""Guards over fractions: text for the judge, near-duplicates, canaries, identical scores and nulls."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from unreel.rewards.guards.result import GuardResult, GuardSettings, conclude, unmeasured_guard
from unreel.rewards.guards.steps import StepSummary
from unreel.stats.sequential import (
    combine_restarted_tests,
    compute_fraction_evidence,
    estimate_fraction_interval,
)

Count = Callable[[StepSummary], tuple[int, int]]
"""Returns how many items of a step are counted, and of how many."""
_COUNTS: Final[dict[str, Count]] = {
    "text": lambda step: (step.n_addressing, step.n_read),
    "duplicates": lambda step: (step.n_duplicates, step.n_fingerprints),
    "identical": lambda step: (step.n_identical, step.n_groups),
    "nulls": lambda step: (step.n_null, step.n_rows),
}


def watch_rate(guard: str, steps: Sequence[StepSummary], settings: GuardSettings) -> GuardResult:
    """Raise an alarm if the mean fraction of a step is above the limit of the guard."""
    limits = {
        "text": settings.text_rate,
        "duplicates": settings.duplicate_rate,
        "identical": settings.identical_rate,
        "nulls": settings.null_rate,
    }
    counts = [(step.step, *_COUNTS[guard](step)) for step in steps]
    return _test_fraction(guard, [count for count in counts if count[2]], limits[guard], settings)


def watch_canaries(steps: Sequence[StepSummary], settings: GuardSettings) -> GuardResult:
    """Raise an alarm if injected canaries are too often not below clean ones.

    The first injected canary of the log is compared with the first clean one, the second with the second and so on;
    equal rewards count half.
    """
    pairs = list(_iter_pairs(steps))
    return _test_fraction("canaries", pairs, settings.inversion_rate, settings)


def _iter_pairs(steps: Sequence[StepSummary]) -> Iterator[tuple[int, float, int]]:
    clean: list[float] = []
    injected: list[float] = []
    n_compared = 0
    for step in steps:
        clean += step.clean
        injected += step.injected
        while n_compared < min(len(clean), len(injected)):
            one, other = injected[n_compared], clean[n_compared]
            yield step.step, 1.0 if one > other else 0.5 * (one == other), 1
            n_compared += 1


def _test_fraction(
    guard: str,
    counts: Sequence[tuple[int, float, int]],
    limit: float,
    settings: GuardSettings,
) -> GuardResult:
    if not counts:
        return unmeasured_guard(guard, "no complete step has such items", settings, n_steps=0)
    fractions = np.array([count / n for _, count, n in counts])
    return conclude(
        guard,
        combine_restarted_tests(
            len(counts), lambda start: compute_fraction_evidence(fractions[start:], limit)
        ),
        lambda part, alpha: estimate_fraction_interval(fractions[part], alpha),
        sizes=[(step, n) for step, _, n in counts],
        limit=limit,
        settings=settings,
    )
