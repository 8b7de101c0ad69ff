"""Trains a tiny generator through the reward service: one honest run, and one that hacks its reward.

    python examples/reward_training/train.py --out OUT                  # both runs, one seed
    python examples/reward_training/train.py --out OUT --seeds 0 1 2 3 4

Each run starts `unreel.rewards.service` on a free port of this machine with a fitted reviewer to train on and one
that is held out, sends the clips of each step over HTTP, and improves the generator by the policy gradient. Then the
guards read the log of the service. OUT gets the logs, `curves.csv`, `alarms.csv` and `reward-training.svg`.
"""

import argparse
import base64
import csv
import json
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import uvicorn
from curves import draw_curves
from generator import PARAMETERS, GaussianPolicy, render, squash, true_quality

from reviewers import CONDITION, fit_reviewer
from unreel.rewards.guards.evaluate import evaluate_guards_on_log
from unreel.rewards.guards.training_steps import iter_reward_log_rows
from unreel.rewards.service.app import create_reward_app
from unreel.rewards.service.settings import RewardServiceSettings

RUNS = {"honest": "honest", "hacked": "hackable"}
"""Reviewer that each run trains on. `held_out` is logged in both and never returned."""
N_STEPS, N_SCENES, N_SAMPLES = 90, 3, 4


@contextmanager
def serve(reviewer: str, log: Path) -> Iterator[str]:
    """Yield the address of a service that runs in a thread."""
    settings = RewardServiceSettings(
        models=[fit_reviewer(reviewer)],
        held_out=[fit_reviewer("held_out")],
        protocols=["reality"],
        condition={"sampling": CONDITION.sampling, "prompt": CONDITION.prompt},
        store=str(log.with_suffix(".sqlite")),
        log=log,
        trusted=True,  # the clips are our own
    )
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_reward_app(settings), log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started:
        time.sleep(0.05)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def ask(address: str, clips: list[bytes], *, step: int, groups: np.ndarray) -> list[float | None]:
    """Return the rewards of clips; `None` for a clip without one."""
    items = [
        {"video": {"data": base64.b64encode(clip).decode()}, "step": step, "group": str(group)}
        for clip, group in zip(clips, groups, strict=True)
    ]
    request = urllib.request.Request(
        f"{address}/v1/rewards",
        json.dumps({"items": items, "deadline_s": 120}).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=150) as reply:
        return [result["value"] for result in json.load(reply)["results"]]


def train(run: str, seed: int, log: Path) -> list[dict[str, float]]:
    """Train for `N_STEPS` steps, and return the means of each step."""
    rng, policy, curve = np.random.default_rng([seed, 11]), GaussianPolicy(), []
    log.unlink(missing_ok=True)
    log.with_suffix(".sqlite").unlink(missing_ok=True)
    with serve(RUNS[run], log) as address:
        for step in range(N_STEPS):
            groups = np.repeat(rng.integers(100_000, 10**6, N_SCENES), N_SAMPLES)
            draws = policy.sample(len(groups), rng)
            parameters = squash(draws)
            clips = [
                render(own, scene=int(scene), seed=int(rng.integers(10**6)))
                for own, scene in zip(parameters, groups, strict=True)
            ]
            rewards = ask(address, clips, step=step, groups=groups)
            policy.improve(draws, groups, rewards)
            row = {"step": step, "quality": np.mean([true_quality(own) for own in parameters])}
            curve.append(row | dict(zip(PARAMETERS, parameters.mean(axis=0), strict=True)))
    return curve


def main() -> None:
    """Train, evaluate the guards, and write tables and curves."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("reward-training"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--runs", nargs="+", default=list(RUNS), choices=RUNS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    curves, alarms = [], []
    for seed in options.seeds:
        for run in options.runs:
            began_s = time.monotonic()
            log = options.out / f"{run}-{seed}.jsonl"
            curve = train(run, seed, log)
            rows = list(iter_reward_log_rows(log))
            curves += add_rewards(curve, rows, run=run, seed=seed)
            results = evaluate_guards_on_log(rows)
            raised = {r.guard: r.alarm_step for r in results if r.alarm}
            first = min(raised.values(), default="")
            names = " ".join(f"{guard}@{step}" for guard, step in raised.items())
            alarms.append({"run": run, "seed": seed, "first alarm": first, "guards": names})
            took_s = time.monotonic() - began_s
            print(f"{run} seed {seed}: {took_s:.0f} s; first alarm: {first or 'none'} {names}")
            write_table(options.out / "curves.csv", curves)
            write_table(options.out / "alarms.csv", alarms)
    svg = draw_curves(curves, alarms, n_steps=N_STEPS)
    (options.out / "reward-training.svg").write_text(svg, encoding="utf-8")


def add_rewards(curve: list[dict], rows: list[dict], *, run: str, seed: int) -> list[dict]:
    """Return the curve with the mean trained and held-out reward of each step."""
    table = []
    for own in curve:
        logged = [row for row in rows if row["step"] == own["step"] and row["value"] is not None]
        trained = float(np.mean([row["value"] for row in logged]))
        held_out = float(np.mean([row["held_out"] for row in logged]))
        means = {name: round(float(value), 4) for name, value in own.items()}
        table.append(
            {"run": run, "seed": seed, "trained": round(trained, 4), "held-out": round(held_out, 4)}
            | means
        )
    return table


def write_table(path: Path, rows: list[dict]) -> None:
    """Write rows as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


if __name__ == "__main__":
    main()
