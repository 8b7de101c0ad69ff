"""What scoring takes, in short: the long form is `benchmarks/ten_million_scores.py`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "ten_million_scores.py"


def test_a_run_whose_answers_are_all_there_is_scored_in_little_memory() -> None:
    typed = [sys.executable, str(BENCHMARK), "--rows", "2000", "--way", "score", "--json"]
    done = subprocess.run(typed, check=True, capture_output=True, text=True)
    (told,) = json.loads(done.stdout)
    assert (told["way"], told["rows"]) == ("score", 2000)
    assert told["peak_mib"] < 512


@pytest.mark.slow
def test_two_runs_of_trace_are_compared_and_reported_in_little_memory() -> None:
    typed = [sys.executable, str(BENCHMARK), "--rows", "500", "--protocol", "trace", "--json"]
    typed += ["--way", "compare", "--way", "report"]
    done = subprocess.run(typed, check=True, capture_output=True, text=True)
    laps = json.loads(done.stdout)
    assert [lap["way"] for lap in laps] == ["compare", "report"]
    assert max(lap["peak_mib"] for lap in laps) < 512
