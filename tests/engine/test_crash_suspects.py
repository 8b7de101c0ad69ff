"""A suspect comes back, or stands proven; a worker that never began says nothing about it."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from unreel.core.errors import InvalidSettingError, InvalidValueError
from unreel.engine.crash_suspects import (
    DEATHS_ALONE,
    CrashSuspectQueue,
    IsolatedProcess,
    WorkerCrash,
)
from unreel.engine.stage import Row, Stage

KILLED = WorkerCrash("SIGKILL", began=True)


def suspects(*keys: str) -> CrashSuspectQueue:
    waiting = CrashSuspectQueue()
    for key in keys:
        waiting.add({"key": key})
    return waiting


def die(waiting: CrashSuspectQueue, times: int, how: WorkerCrash = KILLED) -> Row | None:
    row = None
    for _ in range(times):
        row = waiting.judge(waiting.take(), how)
    return row


def test_a_suspect_that_dies_alone_each_time_is_quarantined() -> None:
    waiting = suspects("a")
    assert die(waiting, DEATHS_ALONE - 1) is None
    row = die(waiting, 1)
    assert row is not None
    assert row["failure_reason"] == "quarantined"
    assert f"{DEATHS_ALONE} workers" in row["failure_detail"]
    assert "SIGKILL" in row["failure_detail"]
    assert not waiting


def test_a_suspect_that_comes_back_once_is_cleared() -> None:
    waiting = suspects("a")
    die(waiting, DEATHS_ALONE - 1)
    assert waiting.judge(waiting.take(), {"key": "a", "text": "yes"}) == {"key": "a", "text": "yes"}
    assert not waiting


def test_a_run_whose_workers_never_begin_ends_and_says_what_to_do() -> None:
    with pytest.raises(InvalidSettingError, match=r"exit code 1.*run again"):
        die(suspects("a"), 50, WorkerCrash("exit code 1", began=False))


CHILD = """
import asyncio, ctypes, os, sys, time
from unreel.core.failure import FailureReason
from unreel.engine.crash_suspects import IsolatedProcess
from unreel.engine.stage import Stage

class Does(Stage):
    def setup(self):
        if os.path.exists("broken"):
            os._exit(3)

    def __call__(self, row):
        match row["key"]:
            case "segfault":
                ctypes.string_at(0)
            case "exit":
                os._exit(7)
            case "raise":
                raise MemoryError("all of it")
            case "wait":
                print(os.getpid(), flush=True)
                time.sleep(600)
        return row | {"text": f"not {os.getppid() == 1}"}

if __name__ == "__main__":
    for key in sys.argv[1:]:
        print(asyncio.run(IsolatedProcess([Does()])({"key": key})))
"""


@pytest.fixture
def script(tmp_path: Path) -> list[str]:
    (tmp_path / "script.py").write_text(CHILD)
    return [sys.executable, str(tmp_path / "script.py")]


def test_a_lone_process_gives_the_row_back_or_tells_how_it_died(
    script: list[str], tmp_path: Path
) -> None:
    command = [*script, "calm", "segfault", "exit", "raise"]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)
    calm, segfault, left, raised = ran.stdout.splitlines()
    assert calm == str({"key": "calm", "text": "not False"})
    assert segfault == str(WorkerCrash("SIGSEGV", began=True))
    assert left == str(WorkerCrash("exit code 7", began=True))
    assert "'failure_reason': 'out-of-memory'" in raised


def test_a_lone_process_that_dies_in_its_set_up_never_began(
    script: list[str], tmp_path: Path
) -> None:
    (tmp_path / "broken").touch()
    ran = subprocess.run(
        [*script, "calm"], check=True, capture_output=True, text=True, cwd=tmp_path
    )
    assert ran.stdout.strip() == str(WorkerCrash("exit code 3", began=False))


def test_a_lone_process_does_not_outlive_its_driver(script: list[str], tmp_path: Path) -> None:
    with subprocess.Popen([*script, "wait"], stdout=subprocess.PIPE, cwd=tmp_path) as driver:
        assert driver.stdout is not None
        pid = int(driver.stdout.readline())
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        until_s = time.monotonic() + 30
        while Path(f"/proc/{pid}").exists():
            assert time.monotonic() < until_s
            time.sleep(0.02)


def test_a_stage_that_cannot_travel_is_refused_with_what_to_do() -> None:
    class Here(Stage):
        def __call__(self, row: Row) -> Row:
            return row

    with pytest.raises(InvalidValueError, match="Define it in a module"):
        IsolatedProcess([Here()])
