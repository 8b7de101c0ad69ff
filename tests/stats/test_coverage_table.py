"""The table of docs/intervals.md is made by a command that runs."""

import json
import subprocess
import sys
from pathlib import Path

COMMAND = Path(__file__).parents[2] / "benchmarks" / "coverage.py"


def run(*words: str) -> str:
    told = subprocess.run(
        [sys.executable, COMMAND, "--only", "share", "auc", *words],
        check=True,
        capture_output=True,
        text=True,
        timeout=100,
    )
    return told.stdout


def test_the_command_counts_how_often_a_known_truth_is_held() -> None:
    cells = json.loads(run("--trials", "30", "--json"))
    assert len(cells) == 2 * 2 * 4
    assert all(cell["trials"] == 30 for cell in cells)
    assert sum(cell["held"] for cell in cells) / len(cells) > 0.9


def test_the_same_seed_gives_the_same_table() -> None:
    first, again, other = (run("--trials", "5", "--seed", seed) for seed in ("1", "1", "2"))
    assert first == again != other
    assert first.splitlines()[0] == "| estimator | truth | 6 | 20 | 50 | 200 |"
