"""Kill -9 of drivers and workers loses no committed row, doubles none; the control must double."""

import importlib.util
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("lance", reason="needs the extra `eval`")

HERE = Path(__file__).parent


def _script(name: str) -> ModuleType:
    sys.path.insert(0, str(HERE))
    try:
        spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(HERE))


def test_driver_kills_lose_nothing_and_double_nothing() -> None:
    tally = _script("kill_driver").kill_drivers(kills=6, rows=150, seed=2)
    assert tally.violations == []
    assert tally.kills == 6
    assert tally.asked_again > 0, "nothing was in flight at any kill: the steps are too tame"


def test_the_control_doubles_rows_else_the_kills_prove_nothing() -> None:
    assert _script("kill_driver").control(kills=1, rows=60, seed=1) > 0


def test_a_killed_child_leaves_a_failure_row_that_a_retry_replaces() -> None:
    tally = _script("kill_worker").kill_workers("local", kills=3, rows=60, seed=1)
    assert tally.violations == []
    assert tally.kills == 3


def test_a_killed_ray_worker_costs_no_row() -> None:
    pytest.importorskip("ray", reason="needs the extra `ray`")
    tally = _script("kill_worker").kill_workers("ray", kills=2, rows=60, seed=1)
    assert tally.violations == []
    assert tally.kills == 2


def test_a_row_that_kills_the_driver_each_time_is_quarantined_and_all_others_finish(
    tmp_path: Path,
) -> None:
    harness, driver = _script("harness"), _script("driver")
    keys = [row["key"] for row in driver.questions(40)]
    (tmp_path / "hold").mkdir()
    (tmp_path / "hold" / keys[20]).touch()
    (tmp_path / "killer").touch()
    command = [sys.executable, str(HERE / "driver.py"), "--folder", str(tmp_path), "--rows", "40"]
    codes: list[int] = []
    while not codes or codes[-1] != 0:
        assert len(codes) < 6
        codes.append(subprocess.run(command, check=False, capture_output=True).returncode)
    assert codes == [-signal.SIGKILL] * 3 + [0]
    rows = harness.rows_in(tmp_path)
    failed = {key: row["failure_reason"] for key, row in rows.items() if row["failure_reason"]}
    assert failed == {keys[20]: "quarantined"}
    assert len(rows) == 40


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_hundred_driver_kills() -> None:
    tally = _script("kill_driver").kill_drivers(kills=100, rows=500, seed=1)
    assert (tally.violations, tally.kills) == ([], 100)


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("engine", ["local", "ray"])
def test_a_hundred_worker_kills(engine: str) -> None:
    tally = _script("kill_worker").kill_workers(engine, kills=100, rows=500, seed=1)
    assert (tally.violations, tally.kills) == ([], 100)
