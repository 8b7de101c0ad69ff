"""The cost table of docs/scale.md comes from what the scripts print, and says what nobody measured."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "scale_table.py"
FIGURES = {
    "throughput": {"laps": [{"contender": "local", "clips": 100, "cpu_s_per_clip": 0.36}]},
    "pieces": {"rows": 1_000, "processor_s": 5.4, "bytes_a_piece": 10_000},
    "eval": {"unreel local": {"cpu_ms": 36.0}},
    "answers": {"write": {"bytes_per_row": 190}, "nothing": {"cpu_us_per_question": 7.2}},
    "scores": [{"us_a_row": 999.0}, {"us_a_row": 360.0}],
    "ledger": [
        {"what": "keep all", "rows": 100, "cpu_s": 0.012},
        {"what": "read all, one by one", "rows": 100, "cpu_s": 0.003},
    ],
}


@pytest.fixture
def table(tmp_path: Path) -> str:
    for name, told in FIGURES.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(told))
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), "--clips", "1000000"],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def test_every_job_is_priced_from_measured_figures(table: str) -> None:
    for row in (
        "| curate | workers: decode, split, 8 frames, hash | 0.36 core-s | 100 core-hours, 4 $ |",
        "| curate | findings and pieces on disk | 10.0 kB | 10.0 GB |",
        "| eval with an API | score | 360 µcore-s | 0.1 core-hours, 0.004 $ |",
        "| any eval | a resume with nothing due | 7 µcore-s | 0.002 core-hours, 8e-05 $ |",
        "| annotate | keep a judgement, 3 a clip | 360 µcore-s | 0.1 core-hours, 0.004 $ |",
    ):
        assert row in table


def test_what_nobody_measured_is_said_to_be_assumed(table: str) -> None:
    assumed = [line.split(" | ")[1] for line in table.splitlines() if "(assumed)" in line]
    assert assumed == [
        "the clips themselves (assumed)",
        "the service (assumed)",
        "the model (assumed)",
        "people (assumed)",
    ]
