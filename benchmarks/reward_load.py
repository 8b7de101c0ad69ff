"""Load, memory and attackers of `unreel reward serve`, as processes on this machine.

    python benchmarks/reward_load.py rates [--rounds 4] [--seconds 8] [--clients 64] [--mb 2]
    python benchmarks/reward_load.py memory [--minutes 30]
    python benchmarks/reward_load.py attack [--seconds 20]

`rates` compares requests per second with a bare FastAPI endpoint that receives and hashes the same uploads: repeated
clips, which are in the cache, and distinct clips. `memory` sends new clips only and prints the resident memory of each
tenth of the time. `attack` prints the p99 of four honest callers without and with attackers. The output is JSON.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from reward_load import measure_attack, measure_memory, measure_rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["rates", "memory", "attack"])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--mb", type=float, default=2)
    parser.add_argument("--minutes", type=float, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="unreel-reward-load-") as folder:
        print(json.dumps(_measure(Path(folder), options)))


def _measure(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    if options.what == "memory":
        sizes, n_clips = measure_memory(folder, minutes=options.minutes)
        return {"resident_mb": sizes, "n_clips": n_clips}
    if options.what == "attack":
        calm, attacked, replies = measure_attack(folder, seconds=options.seconds)
        p99 = {"p99_ms": round(calm.p99_ms, 1), "p99_attacked_ms": round(attacked.p99_ms, 1)}
        return p99 | {"replies": replies, "errors": calm.errors + attacked.errors}
    results = measure_rates(
        folder,
        rounds=options.rounds,
        seconds=options.seconds,
        clients=options.clients,
        size=int(1e6 * options.mb),
    )
    bare = [each.rate for each in results["bare"]]
    summary = {}
    for name, loads in results.items():
        ratios = [each.rate / rate for each, rate in zip(loads, bare, strict=True)]
        errors = sum(sum(each.errors.values()) for each in loads)
        summary[name] = {
            "requests_per_s": [round(each.rate, 1) for each in loads],
            "ratio": round(median(ratios), 3),
            "errors": errors,
        }
    return summary


if __name__ == "__main__":
    main()
