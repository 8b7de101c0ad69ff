"""A curation of drawn pieces, in short: the long form is `benchmarks/million_pieces.py`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "million_pieces.py"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_drawn_pieces_are_frozen_in_little_memory_and_the_same_after_kills() -> None:
    typed = [sys.executable, str(BENCHMARK), "--rows", "300", "--killed", "--json"]
    typed += ["--without", "audit"]  # it fits as many models for few clips as for many
    done = subprocess.run(typed, check=True, capture_output=True, text=True)
    told = json.loads(done.stdout)
    assert told["kills"] == 2
    assert told["same_after_kills"]
    assert told["clips"] + told["left_out"] >= 300
    assert told["peak_mib"] < 800
