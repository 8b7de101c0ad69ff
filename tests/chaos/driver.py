"""A run that can be killed: `python driver.py --folder F --rows N ...`, started by the harness.

It prints one line for each step of the committer and of the stage (`asked`, `written`, `committed`).
With `--stop-at STEP:N` it prints `stopped` at the N-th such step and stays there until it is killed.
`--stage FILE.py:Class` swaps in another stage: it is built with the folder, and must append
`key pid` to `asks.log` there when it starts a row.
"""

import argparse
import importlib.util
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from unreel.core.identity import digest
from unreel.engine.committer import Pace
from unreel.engine.kind import ANSWERS
from unreel.engine.place import Place
from unreel.engine.run import ALL_FAILURES, run
from unreel.engine.stage import Resources, Row, Stage
from unreel.engine.table import Table

PACE_ROWS = 10
IN_FLIGHT = 8


class Answering(Stage):
    """Answers from the key alone; writes down each ask, stays where told, and can die on purpose."""

    resources = Resources(cpus=1, in_flight=IN_FLIGHT)

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, row: Row) -> Row:
        key = row["key"]
        note(self._folder, key)
        held = self._folder / "hold" / key
        while held.exists():  # The harness takes the file away and kills this process.
            time.sleep(0.005)
            if (self._folder / "killer").exists():
                os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.003)
        return row | {"text": digest("answer", key)}


def note(folder: Path, key: str) -> None:
    """Append one ask to the log, in one write."""
    log = os.open(folder / "asks.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(log, f"{key} {os.getpid()}\n".encode())
    os.close(log)


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def questions(n_rows: int) -> list[Row]:
    return [{"key": digest("chaos", str(number))} for number in range(n_rows)]


class Steps:
    """Prints each step; at the one that was asked for, says so and stays."""

    def __init__(self, stop_at: str) -> None:
        self._step, _, count = stop_at.partition(":")
        self._left = int(count or 0)
        self._guard = threading.Lock()

    def __call__(self, step: str, n_rows: int) -> None:
        with self._guard:
            self._left -= step == self._step
            stop = step == self._step and self._left == 0
            say("stopped" if stop else step, n_rows)
        if stop:
            threading.Event().wait()


class Announced(Stage):
    """The stage, with its asks as steps: local runs only, since the steps live in this process."""

    def __init__(self, stage: Stage, steps: Steps) -> None:
        self.resources = stage.resources
        self._stage, self._steps = stage, steps

    def setup(self) -> None:
        self._stage.setup()

    def __call__(self, row: Row) -> Any:
        self._steps("asked", 1)
        return self._stage(row)

    def close(self) -> Any:
        return self._stage.close()


def append_plainly(folder: Path, rows: list[Row], stage: Stage, steps: Steps) -> None:
    """The control: asks everything, appends, knows nothing of what was there."""
    place = str(folder / "answers.lance")
    for start in range(0, len(rows), PACE_ROWS):
        answered = [stage(row) for row in rows[start : start + PACE_ROWS]]
        table = pa.Table.from_batches([ANSWERS.batch(answered)])
        steps("written", len(answered))
        lance.write_dataset(table, place, mode="append" if Path(place).exists() else "create")
        steps("committed", len(answered))


def load_stage(name: str, folder: Path) -> Stage:
    if not name:
        return Answering(folder)
    path, _, attribute = name.rpartition(":")
    spec = importlib.util.spec_from_file_location("chaos_stage", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["chaos_stage"] = module
    spec.loader.exec_module(module)
    stage: Stage = getattr(module, attribute)(folder)
    return stage


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--folder", type=Path, required=True)
    options.add_argument("--rows", type=int, default=500)
    options.add_argument("--engine", default="local")
    options.add_argument("--stop-at", default="")
    options.add_argument("--stage", default="")
    options.add_argument("--retry", action="store_true")
    options.add_argument("--plain", action="store_true")
    given = options.parse_args()
    steps, rows = Steps(given.stop_at), questions(given.rows)
    stage = load_stage(given.stage, given.folder)
    if given.engine == "local":
        stage = Announced(stage, steps)
    if given.plain:
        append_plainly(given.folder, rows, stage, steps)
        return
    if given.engine == "ray":
        import ray

        # Two logical CPUs starve Ray's own operators beside our actors.
        ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    summary = run(
        rows,
        [stage],
        table=Table(Place(str(given.folder / "answers.lance")), ANSWERS),
        engine=given.engine,
        pace=Pace(rows=PACE_ROWS, seconds=0.5),
        retry_failed=ALL_FAILURES if given.retry else (),
        observe=steps,
    )
    say("summary", summary)


if __name__ == "__main__":
    main()
