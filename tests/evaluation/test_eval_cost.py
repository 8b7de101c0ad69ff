"""The script behind `docs/performance.md` still runs, and both sides of it answer everything."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "eval_cost.py"


@pytest.mark.slow
def test_the_bare_loop_and_unreel_answer_the_same_samples() -> None:
    sides = ["bare AsyncOpenAI loop", "unreel local"]
    command = [sys.executable, str(SCRIPT), "--samples", "2", "--rounds", "1", "--json"]
    for side in sides:
        command += ["--only", side]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert list(figures) == sides
    assert all(figure["cpu_ms"] > 0 and figure["per_s"] > 0 for figure in figures.values())
