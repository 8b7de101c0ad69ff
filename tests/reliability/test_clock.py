"""A clock that is set forward and back in the middle of a run decides nothing."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reliability.trial import Trial, require_kept, wait_until

_LIBRARIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")
# libfaketime 0.9.10 refuses the way in which Python sleeps since 3.11.
SLEEP = "import select, time; time.sleep = lambda s: select.select([], [], [], s); "


@pytest.fixture
def clock(tmp_path: Path) -> dict[str, str]:
    """An environment in which the file `clock` says how wrong the wall clock is."""
    return build_clock_environment(tmp_path / "clock")


def build_clock_environment(file: Path) -> dict[str, str]:
    """An environment in which `file` says how wrong the wall clock is."""
    name = "faketime/libfaketimeMT.so.1"
    library = next((Path(f) / name for f in _LIBRARIES if (Path(f) / name).exists()), None)
    if library is None:
        pytest.skip("libfaketime is absent: apt-get install faketime")
    file.write_text("+0")
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


@pytest.mark.slow
def test_a_clock_set_forward_and_back_during_a_run_changes_nothing(
    trial: Trial, clock: dict[str, str], tmp_path: Path, whole: Callable[[], Any]
) -> None:
    scores, texts = whole()
    trial = replace(trial, environment=clock, first=SLEEP)
    started = trial.start_and_stand(3)
    before = trial.texts()
    (tmp_path / "clock").write_text("+400d")
    trial.chat.answer_only(4)
    trial.chat.released.set()
    wait_until(lambda: trial.committed() >= 6, started)
    (tmp_path / "clock").write_text("-400d")
    trial.chat.release()
    ended = started.end()
    assert ended.status == 0, ended.stderr
    assert (ended.scores, trial.texts()) == (scores, texts)
    require_kept(before, trial.texts())


_READER = """
import sys
from pathlib import Path
from unreel.asking.answer_table import ANSWERS
from unreel.engine.writer_lock import build_writer_lock
from unreel.engine.location import StorageLocation
from unreel.engine.table import LanceTable
from unreel.engine.table_writer import TableWriter

table = LanceTable(StorageLocation(sys.argv[1]), ANSWERS)
with build_writer_lock(table.place) as lock:
    writer = TableWriter(table, lock=lock, observe=lambda step, rows: None)
    for n in range(4):
        writer.append([{"key": f"k{n}"}])
    reader = table.open()
    for n in range(4, 8):
        writer.append([{"key": f"k{n}"}])
    Path(sys.argv[2]).write_text("+2d")
    writer.compact()
    print(table.open().checkout_version(reader.version).count_rows(), table.count())
"""


def test_a_clock_set_forward_takes_nothing_from_who_reads_an_older_version(
    clock: dict[str, str], tmp_path: Path
) -> None:
    environment = os.environ | clock  # noqa: TID251  handed on to a child
    command = [sys.executable, "-c", _READER, str(tmp_path / "t.lance"), str(tmp_path / "clock")]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment, timeout=100
    )
    assert done.stdout.split() == ["4", "8"], done.stderr
