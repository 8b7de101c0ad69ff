"""Start a driver, follow its lines, kill it, look at what is left."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
DRIVER_S = 900.0
_POLL_S = 0.002


@dataclass(slots=True)
class Tally:
    """What the kills did; a violation is a sentence."""

    kills: int = 0
    kills_by_step: dict[str, int] = field(default_factory=dict)
    asked_again: int = 0
    violations: list[str] = field(default_factory=list)

    def expect(self, holds: bool, sentence: str) -> None:  # noqa: FBT001  reads as an assertion
        if not holds:
            self.violations.append(sentence)

    def count(self, step: str) -> None:
        self.kills += 1
        self.kills_by_step[step] = self.kills_by_step.get(step, 0) + 1


@dataclass(slots=True)
class Driver:
    """A driver at work, and the lines that it has printed so far."""

    process: subprocess.Popen[str]
    folder: Path
    lines: list[str] = field(default_factory=list)

    @property
    def stopped(self) -> str:
        """The step at which it stands; empty as long as it works."""
        said = [line.split()[1] for line in self.lines if line.startswith("stopped")]
        return said[0] if said else ""

    @property
    def committed(self) -> int:
        """Rows that it said were committed."""
        steps = [line.removeprefix("stopped ").split() for line in self.lines]
        return sum(int(words[1]) for words in steps if words[0].endswith("committed"))

    @property
    def errors(self) -> str:
        """The end of what it complained about."""
        return (self.folder / "stderr.log").read_text()[-2000:]

    def follow(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as said:
            for line in said:
                self.lines.append(line.rstrip("\n"))


@contextmanager
def driver(folder: Path, *options: str) -> Iterator[Driver]:
    """A driver over `folder`; it is dead and all its lines are read when the block ends."""
    with (folder / "stderr.log").open("a") as errors:
        process = subprocess.Popen(
            [sys.executable, str(HERE / "driver.py"), "--folder", str(folder), *options],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    started = Driver(process, folder)
    reader = threading.Thread(target=started.follow, daemon=True)
    reader.start()
    try:
        yield started
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        reader.join(timeout=5)  # a worker that outlives its driver may hold the pipe open


def finish(folder: Path, *options: str) -> list[str]:
    """Let a driver run to its end; its lines."""
    with driver(folder, *options) as started:
        started.process.wait(timeout=DRIVER_S)
    if started.process.returncode != 0:
        raise RuntimeError(started.errors)
    return started.lines


@dataclass(frozen=True, slots=True)
class Killed:
    """A driver that was killed: at which step, and how many rows it said were committed."""

    step: str
    committed: int


def kill_at(folder: Path, stop_at: str, *options: str) -> Killed | None:
    """Kill -9 a driver at `stop_at`; `None` if it ended before.

    `STEP:N` lets the driver stand still at its N-th such step. `request:N` kills it as soon as the
    server has noted N more questions, wherever the driver is then.
    """
    step, _, count = stop_at.partition(":")
    until: Callable[[Driver], bool] = lambda started: bool(started.stopped)  # noqa: E731
    if step == "request":
        due = n_asked(folder) + int(count)
        until, stop_at = (lambda _: n_asked(folder) >= due), ""
    deadline_s = time.monotonic() + DRIVER_S
    with driver(folder, "--stop-at", stop_at, *options) as started:
        process = started.process
        while process.poll() is None and not until(started):
            if time.monotonic() > deadline_s:
                msg = f"{stop_at} did not come within {DRIVER_S:g} s: {started.errors}"
                raise TimeoutError(msg)
            time.sleep(_POLL_S)
        kin = descendants(process.pid)
        process.send_signal(signal.SIGKILL)
        if process.wait(timeout=DRIVER_S) == 0:
            return None
    assert process.returncode == -signal.SIGKILL, started.errors
    await_gone(kin)
    return Killed(started.stopped or step, started.committed)


def n_asked(folder: Path) -> int:
    """How many questions were put so far."""
    log = folder / "asks.log"
    return log.read_bytes().count(b"\n") if log.exists() else 0


def asks_in(folder: Path) -> list[str]:
    """Keys in the order in which they were asked."""
    log = folder / "asks.log"
    return log.read_text().split() if log.exists() else []


def repeats(keys: Sequence[str]) -> int:
    """How many of these asks put a question that was put before."""
    return len(keys) - len(set(keys))


def kill_and_confirm(pid: int, *, wait_s: float = 20.0) -> None:
    """Kill -9 one process by its id and see it gone."""
    os.kill(pid, signal.SIGKILL)
    until_s = time.monotonic() + wait_s
    while state_of(pid) not in "ZX":
        if time.monotonic() > until_s:
            msg = f"pid {pid} outlived kill -9"
            raise TimeoutError(msg)
        time.sleep(0.01)


def await_gone(pids: set[int], *, wait_s: float = 30.0) -> None:
    """Wait for the kin of a killed driver, and end by its id whoever does not follow it."""
    until_s = time.monotonic() + wait_s
    left = pids
    while left := {pid for pid in left if state_of(pid) not in "ZX"}:
        if time.monotonic() > until_s:
            for pid in left:
                kill_and_confirm(pid)
        time.sleep(0.02)


def state_of(pid: int) -> str:
    """The kernel's letter for a process: `T` stopped, `Z` dead and not yet buried, `X` gone."""
    words = _stat(pid)
    return words[0] if words else "X"


def descendants(ancestor: int) -> set[int]:
    parents = {pid: int(words[1]) for pid, words in _processes()}
    found, fresh = set[int](), {ancestor}
    while fresh := {pid for pid, parent in parents.items() if parent in fresh} - found:
        found |= fresh
    return found


def _processes() -> Iterator[tuple[int, list[str]]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (words := _stat(int(entry.name))):
            yield int(entry.name), words


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def fresh_in(root: Path) -> Iterator[Path]:
    """Fresh folders inside `root`."""
    for number in itertools.count():
        path = root / f"run-{number:03d}"
        path.mkdir()
        yield path
