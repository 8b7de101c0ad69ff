"""What the kill scripts share: start a driver, follow its lines, kill, look at what is left."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from unreel.engine.kind import ANSWERS
from unreel.engine.place import Place
from unreel.engine.stage import Row
from unreel.engine.table import Table

HERE = Path(__file__).parent
DRIVER_S = 240.0


@dataclass(slots=True)
class Tally:
    """What the kills did; a violation is a sentence."""

    kills: int = 0
    asks: int = 0
    asked_again: int = 0
    most_in_flight: int = 0
    violations: list[str] = field(default_factory=list)

    def expect(self, holds: bool, sentence: str) -> None:  # noqa: FBT001  reads as an assertion
        if not holds:
            self.violations.append(sentence)


@contextmanager
def driver(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A driver over `folder`; it is dead when the block ends."""
    with (folder / "stderr.log").open("a") as errors:
        process = subprocess.Popen(
            [sys.executable, str(HERE / "driver.py"), "--folder", str(folder), *options],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def finish(folder: Path, *options: str) -> list[str]:
    """Let a driver run to its end; its lines."""
    with driver(folder, *options) as process:
        out, _ = process.communicate(timeout=DRIVER_S)
    if process.returncode != 0:
        msg = (folder / "stderr.log").read_text()[-2000:]
        raise RuntimeError(msg)
    return out.splitlines()


def kill_at(folder: Path, stop_at: str, *options: str) -> int | None:
    """Kill -9 a driver once it stands at `stop_at`; rows it said were committed, `None` if it ended."""
    committed = 0
    with driver(folder, "--stop-at", stop_at, *options) as process:
        assert process.stdout is not None
        for line in process.stdout:
            step, _, count = line.partition(" ")
            if step == "stopped":
                process.send_signal(signal.SIGKILL)
                break
            if step == "committed":
                committed += int(count)
        if process.wait(timeout=DRIVER_S) == 0:
            return None
    assert process.returncode == -signal.SIGKILL, (folder / "stderr.log").read_text()[-2000:]
    return committed + (int(count) if stop_at.startswith("committed") else 0)


def rows_in(folder: Path) -> dict[str, Row]:
    """The table as readers see it; raises on a doubled key."""
    table = Table(Place(str(folder / "answers.lance")), ANSWERS)
    return {row["key"]: row for row in table.rows()} if table.exists() else {}


def asks_in(folder: Path) -> list[str]:
    """Keys in the order in which they were asked."""
    return [key for key, _ in asks_with_pid(folder)]


def asks_with_pid(folder: Path) -> list[tuple[str, int]]:
    log = folder / "asks.log"
    if not log.exists():
        return []
    lines = [line.split() for line in log.read_text().splitlines()]
    return [(key, int(pid)) for key, pid in lines]


def asked_again(folder: Path) -> int:
    return sum(count - 1 for count in Counter(asks_in(folder)).values())


def kill_and_confirm(pid: int, *, wait_s: float = 20.0) -> None:
    """Kill -9 one process by its id and see it gone."""
    os.kill(pid, signal.SIGKILL)
    until_s = time.monotonic() + wait_s
    while not _is_gone(pid):
        if time.monotonic() > until_s:
            msg = f"pid {pid} outlived kill -9"
            raise TimeoutError(msg)
        time.sleep(0.01)


def _is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"


@contextmanager
def folders() -> Iterator[Iterator[Path]]:
    """Fresh folders, gone at the end."""
    with tempfile.TemporaryDirectory(prefix="unreel-chaos-") as root:

        def fresh() -> Iterator[Path]:
            number = 0
            while True:
                path = Path(root) / f"run-{number:03d}"
                path.mkdir()
                yield path
                number += 1

        yield fresh()
