"""Faults of a chaos day: kill, stop, cut replies, fill a disk, set a clock; each is logged with its time."""

import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.harness import await_gone, descendants
from reliability.disk import fill
from reliability.proxy import Fault, Proxy

FAULT_S = (2.0, 8.0)
"""Shortest and longest duration of a fault that lasts."""
GAP_S = (0.5, 3.0)
"""Shortest and longest pause between two faults of one thread."""
N_AT_ONCE = 2
NOT_RUNNING = "not running"
CLOCKS = ("+10m", "-10m", "+3h", "-3h", "+400d", "-400d")


@dataclass
class LoadRecord:
    """Counts of one kind of work, and the invariants that it broke."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def count(self, key: str, n: int = 1) -> None:
        with self.guard:
            self.counts[key] += n

    def expect(self, sentence: str, *, holds: bool) -> None:
        if not holds:
            sys.stderr.write(f"{self.name}: {sentence}\n")
            with self.guard:
                self.violations.append(sentence)


@dataclass(frozen=True)
class ChaosFault:
    """One fault that can happen to one target; `inject` returns when it is over, with a detail for the log."""

    kind: str
    target: str
    inject: Callable[[random.Random], str]


def kill(
    target: str, find_pid: Callable[[], int], wait_ready: Callable[[], None] = lambda: None
) -> ChaosFault:
    """Kill -9 the process of `find_pid`, or one of its descendants."""

    def inject(chance: random.Random) -> str:
        if not (main := find_pid()):
            return NOT_RUNNING
        below = descendants(main)
        is_main = not below or chance.random() < 0.6
        pid = main if is_main else chance.choice(sorted(below))
        name = "main process" if is_main else f"child {_read_name(pid)}"
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        if is_main:
            await_gone(below)
        wait_ready()
        return name

    return ChaosFault("kill", target, inject)


def restart(target: str, end: Callable[[], None], start: Callable[[], None]) -> ChaosFault:
    """Kill -9 all processes of a server, and start it again after some seconds."""

    def inject(chance: random.Random) -> str:
        end()
        seconds = _wait(chance)
        start()
        return f"all processes, started again after {seconds}"

    return ChaosFault("kill", target, inject)


def stop(target: str, find_pid: Callable[[], int]) -> ChaosFault:
    """SIGSTOP a process and its descendants for some seconds, then SIGCONT."""

    def inject(chance: random.Random) -> str:
        if not (main := find_pid()):
            return NOT_RUNNING
        pids = {main, *descendants(main)}
        _signal_all(pids, signal.SIGSTOP)
        try:
            return _wait(chance)
        finally:
            _signal_all(pids, signal.SIGCONT)

    return ChaosFault("stop", target, inject)


def cut(target: str, proxy: Proxy) -> ChaosFault:
    """Delay, refuse, cut or lose replies, or answer nothing."""

    def inject(chance: random.Random) -> str:
        if chance.random() < 0.4:
            fault = chance.choice([Fault.STUCK, Fault.LOST, Fault.BUSY])
            proxy.always(fault)
            words = f"every request {fault}"
        else:
            n = chance.choice([2, 3, 4])
            proxy.every(n, Fault.SLOW, Fault.BUSY, Fault.HALF, Fault.LOST)
            words = f"every {n}. request slow, busy, half or lost"
        try:
            return f"{words}, {_wait(chance)}"
        finally:
            proxy.sound()

    return ChaosFault("network", target, inject)


def fill_disk(target: str, disk: Path) -> ChaosFault:
    """Use up all room of a small disk for some seconds."""

    def inject(chance: random.Random) -> str:
        ballast = fill(disk)
        try:
            return _wait(chance)
        finally:
            ballast.unlink()

    return ChaosFault("disk full", target, inject)


def set_clock(target: str, file: Path) -> ChaosFault:
    """Set the wall clock of a process forward or back for some seconds."""

    def inject(chance: random.Random) -> str:
        words = chance.choice(CLOCKS)
        file.write_text(words)
        try:
            return f"{words}, {_wait(chance)}"
        finally:
            file.write_text("+0")

    return ChaosFault("clock", target, inject)


@dataclass
class FaultSchedule:
    """Faults in random order, each once in every deck; two at once, one per target."""

    faults: Sequence[ChaosFault]
    seed: int
    seconds: float
    log: Callable[[dict[str, Any]], None]
    record: LoadRecord = field(default_factory=lambda: LoadRecord("faults"))
    _deck: list[ChaosFault] = field(default_factory=list)
    _postponed: set[ChaosFault] = field(default_factory=set)
    """Faults whose target did not run: they are in the next deck twice."""
    _busy: set[str] = field(default_factory=set)

    def run(self) -> None:
        """Inject faults until the time is over."""
        began_s, chance = time.monotonic(), random.Random(self.seed)
        seeds = [chance.random() for _ in range(N_AT_ONCE)]
        with ThreadPoolExecutor(N_AT_ONCE) as pool:
            list(pool.map(lambda seed: self._inject(began_s, random.Random(seed)), seeds))

    def _inject(self, began_s: float, chance: random.Random) -> None:
        while (at_s := time.monotonic() - began_s) < self.seconds:
            if (fault := self._take(chance)) is None:
                time.sleep(0.2)
                continue
            try:
                detail = fault.inject(chance)
                self.record.count(f"{fault.kind} {fault.target}", int(detail != NOT_RUNNING))
            except Exception as error:  # noqa: BLE001  a fault that fails is a result
                detail = f"{type(error).__name__}: {error}"
                self.record.expect(f"{fault.kind} of {fault.target}: {detail}", holds=False)
            self._busy.discard(fault.target)
            if detail == NOT_RUNNING:
                self._postponed.add(fault)
                time.sleep(0.2)
                continue
            took_s = time.monotonic() - began_s - at_s
            times = {"at_s": round(at_s, 1), "took_s": round(took_s, 1)}
            self.log({**times, "kind": fault.kind, "target": fault.target, "detail": detail})
            time.sleep(chance.uniform(*GAP_S))

    def _take(self, chance: random.Random) -> ChaosFault | None:
        with self.record.guard:
            if all(one.target in self._busy for one in self._deck):
                waiting = [*self.faults, *self._postponed]
                self._deck += chance.sample(waiting, len(waiting))
                self._postponed.clear()
            found = next((one for one in self._deck if one.target not in self._busy), None)
            if found is not None:
                self._deck.remove(found)
                self._busy.add(found.target)
            return found


def _wait(chance: random.Random) -> str:
    seconds = chance.uniform(*FAULT_S)
    time.sleep(seconds)
    return f"{seconds:.1f} s"


def _signal_all(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _read_name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return "?"
