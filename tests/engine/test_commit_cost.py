"""What storing rows costs, in short: the long form is `benchmarks/commit_cost.py`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("lance", reason="needs the extra `eval`")

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "commit_cost.py"


def test_what_is_written_besides_the_rows_is_little() -> None:
    typed = [sys.executable, str(BENCHMARK), "--rows", "6000", "--through", "run", "--json"]
    done = subprocess.run(typed, check=True, capture_output=True, text=True)
    told = json.loads(done.stdout)
    assert told["rows"] == 6_000
    assert told["manifest_bytes_per_row"] < 5
    assert told["written_per_byte_kept"] < 2.5
    assert told["peak_mib"] < 512
