"""Two minutes of the chaos day: kills, stops, cut replies, a full disk and wrong clocks break no invariant."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("lance", reason="needs the extra `eval`")
pytest.importorskip("psycopg", reason="needs the extra `annotate`")
pytest.importorskip("fastapi", reason="needs the extras `desk` and `reward`")

from studio import studio_program

SCRIPT = Path(__file__).parent / "chaos_day.py"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_minutes_of_chaos_break_no_invariant() -> None:
    command = [sys.executable, str(SCRIPT), "--minutes", "2", "--seed", "1"]
    command += ["--label-studio", str(studio_program())]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.stdout, done.stderr[-3000:]
    result = json.loads(done.stdout)
    assert result["violations"] == []
    assert done.returncode == 0
    counts = result["counts"]
    assert sum(counts["faults"].values()) >= 10
    assert counts["campaign"]["judgements in the ledger"] > 0
    assert counts["desk"]["cases finished"] > 0
    assert counts["reward"]["end: value"] > 0
    for name in ("eval on a disk", "eval in s3"):
        assert counts[name]["runs ended"] > 0
