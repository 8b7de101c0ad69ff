"""Nothing that a leash started outlives whoever holds it."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from unreel.core import managed_process
from unreel.core.managed_process import ManagedProcess, run_supervised_command

STUBBORN = (
    "import os, signal, subprocess, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'],"
    " start_new_session=True)\n"
    "print(os.getpid(), child.pid, flush=True)\n"
    "time.sleep(600)\n"
)


@pytest.fixture
def start(tmp_path: Path) -> Callable[[str], ManagedProcess]:
    def started(code: str) -> ManagedProcess:
        with (tmp_path / "log").open("ab") as log:
            return ManagedProcess(
                [sys.executable, "-c", code], log=log, environment={}, folder=tmp_path
            )

    return started


def test_a_command_that_dies_by_a_signal_tells_which(
    start: Callable[[str], ManagedProcess],
) -> None:
    one = start("import os; os.kill(os.getpid(), 9)")
    assert one.wait() == 128 + signal.SIGKILL


def test_a_killed_holder_takes_its_command_along(tmp_path: Path) -> None:
    code = (
        "import os, sys, time\nfrom pathlib import Path\nfrom unreel.core.managed_process import ManagedProcess\n"
        f"log = open({str(tmp_path / 'log')!r}, 'ab')\n"
        f"one = ManagedProcess([sys.executable, '-c', {STUBBORN!r}], log=log, environment=os.environ,"
        f" folder=Path({str(tmp_path)!r}))\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as caller:
        pids = _pids(tmp_path / "log")
        caller.kill()
    _await(lambda: not any(map(_lives, pids)))


def test_a_leash_whose_holding_process_hangs_is_cut(
    start: Callable[[str], ManagedProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = start("import time; time.sleep(600)")
    monkeypatch.setattr(managed_process, "STOP_TIMEOUT_S", 0.1)
    os.kill(one._holder.pid, signal.SIGSTOP)
    one.end()
    assert not one.is_alive


@pytest.fixture
def own_signals(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets this process hold a command itself, and be as it was afterwards."""
    before, children = (
        set(managed_process._list_child_processes()),
        managed_process._list_child_processes,
    )
    monkeypatch.setattr(
        managed_process, "_list_child_processes", lambda: [p for p in children() if p not in before]
    )
    heard = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = [signal.getsignal(number) for number in heard]
    yield
    for number, handler in zip(heard, handlers, strict=True):
        signal.signal(number, handler)
    ctypes.CDLL(None).prctl(managed_process._PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@pytest.mark.usefixtures("own_signals")
@pytest.mark.filterwarnings("ignore:lance is not fork-safe")  # of other tests in this process
def test_holding_ends_with_the_command_and_kills_what_it_left_behind(tmp_path: Path) -> None:
    code = STUBBORN.replace("time.sleep(600)\n", "").replace(
        "flush", f"file=open({str(tmp_path / 'log')!r}, 'w'), flush"
    )
    reading, writing = os.pipe()
    try:
        assert run_supervised_command(reading, [sys.executable, "-W", "ignore", "-c", code]) == 0
    finally:
        os.close(writing)
        os.close(reading)
    assert not any(map(_lives, _pids(tmp_path / "log")))


@pytest.mark.usefixtures("own_signals")
@pytest.mark.filterwarnings("ignore:lance is not fork-safe")  # of other tests in this process
def test_holding_ends_with_the_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managed_process, "STOP_TIMEOUT_S", 1.0)
    reading, writing = os.pipe()
    os.close(writing)
    try:
        assert run_supervised_command(reading, [sys.executable, "-c", STUBBORN]) > 128
    finally:
        os.close(reading)


def _pids(log: Path) -> list[int]:
    _await(lambda: log.is_file() and log.read_text().endswith("\n"))
    return [int(pid) for pid in log.read_text().split()]


def _lives(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def _await(condition: Callable[[], bool], seconds: float = 60) -> None:
    until_s = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until_s, "it never happened"
        time.sleep(0.05)
