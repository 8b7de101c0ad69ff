"""A run that can be killed: `python driver.py --folder F --rows N ...`, started by the harness.

It prints one line for each step of the committer and of the stage (`asked`, `written`, `committed`).
With `--stop-at STEP:N` it prints `stopped STEP` at the N-th such step and stays there until it is
killed; of several, with commas between them, it stops at the first that comes.
With `--eval` it is `unreel eval` itself, as `eval_trial.py` starts it; its steps have the table's
name before them (`answers-written`).
"""

import argparse
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import eval_trial

from unreel.asking.answer_table import ANSWERS
from unreel.core.content_ids import digest
from unreel.engine.committer import CommitPace
from unreel.engine.location import StorageLocation
from unreel.engine.run import run_pending_questions
from unreel.engine.stage import Row, Stage, WorkerResources
from unreel.engine.table import LanceTable

PACE_ROWS = 10


class Answering(Stage):
    """Answers from the key alone, and writes down each ask."""

    resources = WorkerResources(cpus=1, in_flight=4)

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, row: Row) -> Row:
        key = row["key"]
        note(self._folder, key)
        time.sleep(0.003)
        return row | {"text": digest("answer", key)}


def note(folder: Path, key: str) -> None:
    """Append one ask to the log, in one write."""
    log = os.open(folder / "asks.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(log, f"{key}\n".encode())
    os.close(log)


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def questions(n_rows: int) -> list[Row]:
    return [{"key": digest("chaos", str(number))} for number in range(n_rows)]


class Steps:
    """Prints each step; at the first one that it was told to stop at, says so and stays."""

    def __init__(self, stop_at: str) -> None:
        stops = (stop.partition(":") for stop in stop_at.split(",") if stop)
        self._left = {step: int(count) for step, _, count in stops}
        self._guard = threading.Lock()

    def __call__(self, step: str, n_rows: int) -> None:
        with self._guard:
            if step in self._left:
                self._left[step] -= 1
            stop = self._left.get(step) == 0
            say(*(["stopped"] if stop else []), step, n_rows)
        if stop:
            threading.Event().wait()


class Announced(Stage):
    """The stage, with its asks as steps."""

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


def start_ray(*, tries: int = 3) -> None:
    """Ray with eight logical CPUs: two starve its own operators beside our actors."""
    import ray

    try:
        ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    except (
        Exception
    ):  # Ray gives its own processes 30 s to start, which a busy machine may not keep
        if tries == 1:
            raise
        ray.shutdown()
        start_ray(tries=tries - 1)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--folder", type=Path, required=True)
    options.add_argument("--rows", type=int, default=500)
    options.add_argument("--engine", default="local")
    options.add_argument("--stop-at", default="")
    options.add_argument("--eval", action="store_true")
    options.add_argument("--pace-rows", type=int, default=PACE_ROWS)
    options.add_argument("--retry", action="store_true")
    given = options.parse_args()
    steps, pace = Steps(given.stop_at), CommitPace(rows=given.pace_rows, seconds=0.5)
    if given.engine == "ray":
        start_ray()
    if given.eval:
        summary = eval_trial.evaluate_in(
            given.folder, engine=given.engine, pace=pace, retry=given.retry, observe=steps
        )
    else:
        summary = run_pending_questions(
            questions(given.rows),
            [Announced(Answering(given.folder), steps)],
            table=LanceTable(StorageLocation(str(given.folder / "answers.lance")), ANSWERS),
            pace=pace,
            observe=steps,
        )
    say("summary", summary)


if __name__ == "__main__":
    main()
