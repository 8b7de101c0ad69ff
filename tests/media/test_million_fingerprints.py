"""What finding near-duplicates of many takes, in short: the long form is `benchmarks/million_fingerprints.py`."""

import json
import subprocess
import sys
from pathlib import Path

from pace import slowness

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "million_fingerprints.py"


def test_copies_planted_among_many_are_found_in_little_memory() -> None:
    typed = [sys.executable, str(BENCHMARK), "--rows", "17000", "--json"]
    done = subprocess.run(typed, check=True, capture_output=True, text=True)
    told = json.loads(done.stdout)
    assert told["rows"] > 16_384, "all pairs of fewer are compared"
    assert told["found by all pairs"] > 100
    assert told["recall"] >= 0.95
    assert told["precision"] >= 0.99
    assert told["cpu_s"] < 60 * slowness()
    assert told["peak_mib"] < 512
