"""What a hundred million clips would cost, from figures measured by `curate_throughput.py --json`.

    python benchmarks/scale_table.py figures.json

Prints the table of docs/scale.md. `--rate` and `--mb` change its assumptions.
"""

import argparse
import json
from pathlib import Path
from typing import Any

CLIPS = 100_000_000
HASHES_BYTES = 4_560
"""A fingerprint as base64 in JSON."""
FOUND_BYTES = 700
"""Shots, borders and measures of one clip in JSON."""
PICTURES_BYTES = 160_000
"""Eight JPEGs of 448 pixels."""
ANSWER_BYTES = 1_000
ROWS_PER_COMMIT = 100_000


def main() -> None:
    asked = _arguments()
    print(_table(json.loads(asked.figures.read_text()), asked))


def _arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figures", type=Path)
    parser.add_argument("--rate", type=float, default=0.04, help="price of a core-hour")
    parser.add_argument("--mb", type=float, default=3.3, help="megabytes of a clip")
    parser.add_argument(
        "--reserve", type=float, default=2.0, help="plan this many times the figure"
    )
    return parser.parse_args()


def _core_seconds(figures: dict[str, Any], name: str) -> float | None:
    """What a further clip costs, or, from laps of one size, a clip with its share of the start-up."""
    for one in figures.get("growth", []):
        if one["contender"] == name:
            return float(one["cpu_s_per_further_clip"])
    sizes = [lap for lap in figures["laps"] if lap["contender"] == name]
    return max(sizes, key=lambda lap: lap["clips"])["cpu_s_per_clip"] if sizes else None


def _table(figures: dict[str, Any], asked: Any) -> str:
    lines = ["| what | each | 100 M clips |", "|---|---|---|"]
    for name in ("local", "ray"):
        cpu_s = _core_seconds(figures, name)
        if cpu_s is None:
            continue
        hours = CLIPS * cpu_s / 3600
        days = hours / 1000 / 24
        lines += [
            (
                f"| decode, split, 8 frames, hash on `{name}` | {cpu_s:.2f} core-seconds | "
                f"{hours:,.0f} core-hours: {days:.1f} days of 1,000 cores, {hours * asked.rate:,.0f} $ |"
            ),
            (
                f"| the same with {asked.reserve:g} times for larger clips, retries and idle cores | "
                f"{cpu_s * asked.reserve:.2f} core-seconds | {hours * asked.reserve:,.0f} core-hours, "
                f"{hours * asked.reserve * asked.rate:,.0f} $ |"
            ),
        ]
    kept = (
        ("the clips themselves", asked.mb * 1e6),
        ("findings and fingerprint", HASHES_BYTES + FOUND_BYTES),
        ("eight pictures, where they are kept", PICTURES_BYTES),
        ("an answer of one reviewer", ANSWER_BYTES),
    )
    lines += [f"| {what} | {_size(each)} | {_size(each * CLIPS)} |" for what, each in kept]
    lines.append(f"| commits | {ROWS_PER_COMMIT:,} rows | {CLIPS // ROWS_PER_COMMIT:,} |")
    return "\n".join(lines)


def _size(size_bytes: float) -> str:
    for unit, power in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= power:
            return f"{size_bytes / power:,.1f} {unit}"
    return f"{size_bytes:.0f} B"


if __name__ == "__main__":
    main()
