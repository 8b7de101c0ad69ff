"""The driver's memory does not grow with the number of questions."""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import resource, sys
from unreel.core.identity import digest
from unreel.engine.kind import ANSWERS
from unreel.engine.place import Place
from unreel.engine.run import run
from unreel.engine.stage import Resources, Stage
from unreel.engine.table import Table

class Recorded(Stage):
    resources = Resources(cpus=0, in_flight=32)
    async def __call__(self, row):
        return row | {"text": "real " * 100}

rows = ({"key": digest(str(number)), "clip": digest("c", str(number))} for number in range(int(sys.argv[2])))
summary = run(rows, [Recorded()], table=Table(Place(sys.argv[1]), ANSWERS))
peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(summary.already, summary.done, round(peak_mb), round(summary.rows_per_s))
"""


def peak_mb(place: Path, n_rows: int, *, already: int = 0) -> int:
    command = [sys.executable, "-c", RUN, str(place), str(n_rows)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert (int(out[0]), int(out[1])) == (already, n_rows - already)
    return int(out[2])


def test_ten_times_the_questions_take_no_more_memory(tmp_path: Path) -> None:
    small = peak_mb(tmp_path / "small", 1_000)
    assert peak_mb(tmp_path / "large", 10_000) - small <= 50


@pytest.mark.slow
def test_a_hundred_thousand_questions_take_no_more_memory_nor_does_their_resume(
    tmp_path: Path,
) -> None:
    small = peak_mb(tmp_path / "small", 1_000)
    assert peak_mb(tmp_path / "large", 100_000) - small <= 50
    assert peak_mb(tmp_path / "large", 100_000, already=100_000) - small <= 50
