"""Whatever a stranger's table holds, reading it takes little memory, ends soon, and says why."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.hostile_tables import BOMBS, mutants, write_million

CHILD = Path(__file__).with_name("try_tables.py")
MOST_MB = 1024
MAX_S = 60
READ = {"parquet: text that is no text", "csv: a row of commas"}
SLOW = {"csv: an open quote", "csv: rows of nothing", "parquet: more rows than are taken"}
"""A million rows are looked at before the next one is refused."""


def _read(*tables: Path) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, CHILD, *tables], check=False, capture_output=True, text=True, timeout=280
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def _hold(told: dict[str, Any]) -> None:
    assert told["mb"] < MOST_MB, told
    assert told["seconds"] < MAX_S, told


@pytest.fixture(scope="module")
def small_bombs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Results of reading all small tables in one process, whose peak memory only grows."""
    names = sorted(BOMBS.keys() - SLOW)
    tables = [BOMBS[name](tmp_path_factory.mktemp("bomb")) for name in names]
    return dict(zip(names, _read(*tables), strict=True))


@pytest.mark.parametrize("name", sorted(BOMBS.keys() - SLOW))
def test_a_small_table_stays_small(name: str, small_bombs: dict[str, dict[str, Any]]) -> None:
    told = small_bombs[name]
    _hold(told)
    if name in READ or name.startswith("jsonl: a "):
        assert "rejected" in told["ended"], told
    elif not name.startswith("json: many"):
        assert told["ended"].startswith("refused: "), told


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SLOW))
def test_a_table_of_too_many_rows_ends_within_a_minute(name: str, tmp_path: Path) -> None:
    (told,) = _read(BOMBS[name](tmp_path))
    _hold(told)
    assert "UNREEL_TABLE_ROWS" in told["ended"]


@pytest.mark.slow
def test_a_million_clips_are_read(tmp_path: Path) -> None:
    write_million(tmp_path / "manifest.csv")
    (told,) = _read(tmp_path / "manifest.csv")
    assert told["ended"] == "read: 1000000 entries, 0 rejected"
    assert told["mb"] < MOST_MB


@pytest.mark.parametrize("count", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_damaged_parquet_files_are_read_or_refused(count: int, tmp_path: Path) -> None:
    tables = []
    for number, (_, make) in enumerate(mutants(count)):
        folder = tmp_path / str(number)
        folder.mkdir()
        tables.append(make(folder))
    found = _read(*tables)
    assert len(found) == len(tables)
    for told in found:
        _hold(told)
