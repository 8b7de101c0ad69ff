"""False alarms and power of the reward guards over simulated runs: `python benchmarks/reward_guards.py [RUNS]`.

Each run has 200 steps. The trained reward rises from 0.3 to 0.7. The held-out reward and the mean motion of a step are
drawn as the name of the case says, with noise of deviation 0.02 (held-out) and 0.3 reference deviations (motion).
With bare labels each of the 32 clips of a step has a reward of 0 or 1, so a mean has the noise of 32 coins.
Seeds start at 1,000. Prints a Markdown table: runs with an alarm, and the median step of the first.

`python benchmarks/reward_guards.py cost STEPS...` measures `LiveRewardGuards` on logs of 8 rows a step instead: processor
time of the first reading, and of each of 10 further steps.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from prometheus_client import CollectorRegistry

from unreel.rewards.guards.evaluate import evaluate_drift_guard, evaluate_held_out_guard
from unreel.rewards.guards.live import LiveRewardGuards
from unreel.rewards.guards.result import GuardResult, RewardGuardLimits
from unreel.rewards.guards.training_steps import StepFactSummary, TrainingStepSummary

N_STEPS = 200
SETTINGS = RewardGuardLimits()
TIME = np.linspace(0, 1, N_STEPS)
Draw = Callable[[np.random.Generator], np.ndarray]


def autocorrelated(rng: np.random.Generator, rho: float) -> np.ndarray:
    """Return noise of deviation 1 whose neighbours correlate by `rho`."""
    noise = rng.normal(size=N_STEPS)
    for step in range(1, N_STEPS):
        noise[step] = rho * noise[step - 1] + np.sqrt(1 - rho**2) * noise[step]
    return noise


NOISE: dict[str, Draw] = {
    "constant, normal noise": lambda rng: rng.normal(size=N_STEPS),
    "constant, skewed noise": lambda rng: 1 - rng.exponential(size=N_STEPS),
    "constant, noise shrinks tenfold": lambda rng: rng.normal(size=N_STEPS) * (1 - 0.9 * TIME),
    "constant, noise correlates by 0.5": lambda rng: autocorrelated(rng, 0.5),
    "constant, noise correlates by 0.9": lambda rng: autocorrelated(rng, 0.9),
}
LEVELS: dict[str, np.ndarray] = {
    "rises by 0.2": 0.2 * TIME,
    "falls by 0.1": -0.1 * TIME,
    "falls by 0.2": -0.2 * TIME,
    "rises by 0.1, falls by 0.2 from step 100": 0.2 * np.minimum(TIME, 0.5)
    - 0.4 * np.maximum(TIME - 0.5, 0),
}


def held_out_run(
    held_out: np.ndarray, rng: np.random.Generator, *, bare: bool = False
) -> GuardResult:
    """Return the result of `held-out` over one run; with `bare`, the means of 32 labels of 0 or 1."""
    trained = 0.3 + 0.4 * TIME + (0 if bare else 0.02) * rng.normal(size=N_STEPS)
    if bare:
        trained, held_out = (rng.binomial(32, chance) / 32 for chance in (trained, held_out))
    steps = [
        TrainingStepSummary(step=i, n_paired=32, value=one, held_out=other)
        for i, (one, other) in enumerate(zip(trained, held_out, strict=True))
    ]
    return evaluate_held_out_guard(steps, SETTINGS, {})


def motion_run(shift: np.ndarray, rng: np.random.Generator) -> GuardResult:
    """Return the result of `motion` over one run; clips have mean 20 and deviation 5."""
    means = 20 + 5 * (shift + 0.3 * rng.normal(size=N_STEPS))
    steps = [
        TrainingStepSummary(step=i, facts={"motion": StepFactSummary(32, float(mean), 32 * 25.0)})
        for i, mean in enumerate(means)
    ]
    return evaluate_drift_guard("motion", steps, SETTINGS, {})


def print_row(guard: str, case: str, results: Sequence[GuardResult]) -> None:
    """Print one row of the table."""
    alarms = [result.alarm_step for result in results if result.alarm_step is not None]
    median = f"{np.median(alarms):.0f}" if alarms else ""
    print(f"| `{guard}` | {case} | {len(alarms)} of {len(results)} | {median} |", flush=True)


def format_step(step: int, rng: np.random.Generator) -> str:
    """Return 8 rows of a log without hacks."""
    rows = []
    for place in range(8):
        facts = {"motion": rng.lognormal(3, 0.3), "saturation": rng.beta(4, 6), "text": ""}
        facts |= {"sharpness": rng.lognormal(1, 0.3), "static_fraction": rng.beta(1, 9)}
        row = {"step": step, "group": str(place // 4), "content": rng.bytes(8).hex()}
        row |= {"value": rng.beta(6, 4), "held_out": rng.beta(5, 5), "facts": facts}
        rows.append(json.dumps(row | {"facts": facts | {"duration_s": rng.normal(2, 0.1)}}))
    return "".join(f"{row}\n" for row in rows)


def measure_cost(n_steps: int) -> tuple[float, float]:
    """Return the processor seconds of reading a log, and of each further step."""
    rng, seconds = np.random.default_rng(0), []
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log.jsonl")
        log.write_text("".join(format_step(step, rng) for step in range(n_steps)))
        with closing(LiveRewardGuards(log, CollectorRegistry())) as guards:
            for step in range(n_steps, n_steps + 11):
                began_s = time.process_time()
                guards.update()
                seconds.append(time.process_time() - began_s)
                with log.open("a") as file:
                    file.write(format_step(step, rng))
    return seconds[0], float(np.mean(seconds[1:]))


def main() -> None:
    """Print the table."""
    if sys.argv[1:2] == ["cost"]:
        for n_steps in map(int, sys.argv[2:]):
            first_s, next_s = measure_cost(n_steps)
            print(
                f"{n_steps} steps: {first_s:.2f} s, then {next_s:.3f} s for each step", flush=True
            )
        return
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print("| guard | truth | runs with an alarm | median step |\n|---|---|---|---|")
    seeds = range(1000, 1000 + n_runs)
    for case, draw in NOISE.items():
        rngs = [np.random.default_rng(seed) for seed in seeds]
        print_row("held-out", case, [held_out_run(0.5 + 0.02 * draw(rng), rng) for rng in rngs])
    for case, level in LEVELS.items():
        rngs = [np.random.default_rng(seed) for seed in seeds]
        results = [held_out_run(0.5 + level + 0.02 * rng.normal(size=N_STEPS), rng) for rng in rngs]
        print_row("held-out", case, results)
        results = [held_out_run(0.5 + level, rng, bare=True) for rng in rngs]
        print_row("held-out", f"{case}, bare labels", results)
    for case, top in {"constant": 0.0, "rises by 1.5 sd": 1.5, "rises by 4 sd": 4.0}.items():
        rngs = [np.random.default_rng(seed) for seed in seeds]
        print_row("motion", case, [motion_run(top * TIME, rng) for rng in rngs])


if __name__ == "__main__":
    main()
