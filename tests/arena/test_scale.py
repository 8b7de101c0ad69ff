"""What reading and ranking a season take, in short: the long forms are `benchmarks/arena_ranking.py` and `arena_reading.py`."""

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "arena_ranking.py"


def test_a_season_of_ten_by_ten_ranks_in_little_memory() -> None:
    typed = [sys.executable, str(BENCHMARK), "--sizes", "10", "--scenes", "150", "--json"]
    done = subprocess.run(typed, check=True, capture_output=True, text=True)
    told = json.loads(done.stdout)
    assert told["answers"] == 10 * 11 * 150
    assert told["cpu_s"] < 30
    assert told["peak_mib"] < 512
