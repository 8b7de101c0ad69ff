"""Finding out what is due, in short: the long forms are `benchmarks/ten_million_answers.py` and `key_lookup.py`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def measured(name: str, *typed: str) -> dict[str, Any]:
    command = [sys.executable, str(BENCHMARKS / name), *typed, "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.slow
def test_resumes_over_stored_answers_ask_exactly_what_is_due() -> None:
    told = measured("ten_million_answers.py", "--rows", "5000")
    asked = [told[part]["asked"] for part in ("nothing", "missing", "failed")]
    assert asked == [0, 50, 50]
    assert told["write"]["stored"] == 4950
    assert told["nothing"]["peak_mib"] < 512


def test_marks_find_keys_with_less_work_than_lances_own_index() -> None:
    told = measured("key_lookup.py", "--rows", "5000")
    assert told["marks"]["bytes_per_row"] == 12
    assert told["marks"]["find_1024_s"] < told["scalar index"]["fetch_1024_s"]
