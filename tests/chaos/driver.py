"""A run that can be killed: `python driver.py --folder F --rows N ...`, started by the harness.

It prints one line for each step of the committer and of the stage (`asked`, `written`, `committed`).
With `--stop-at STEP:N` it prints `stopped STEP` at the N-th such step and stays there until it is
killed; of several, with commas between them, it stops at the first that comes.
`--stage FILE.py:Class` swaps in another stage: it is built with the folder, and must append
`key pid` to `asks.log` there when it starts a row. `--stage eval` is `unreel eval` itself, as
`eval_trial.py` starts it; its steps have the table's name before them (`answers-written`).
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

import eval_trial

from unreel.core.content_ids import digest
from unreel.engine import crash_suspects
from unreel.engine.committer import CommitPace
from unreel.engine.location import StorageLocation
from unreel.engine.run import ALL_FAILURES, run_pending_questions
from unreel.engine.stage import Row, Stage, WorkerResources
from unreel.engine.table import LanceTable
from unreel.evaluation.table_schemas import ANSWERS

PACE_ROWS = 10
IN_FLIGHT = 4
"""Few: whoever is in flight when a worker dies is a suspect, and each suspect costs a start of Python."""


class Answering(Stage):
    """Answers from the key alone; writes down each ask, stays where told, and can die on purpose."""

    resources = WorkerResources(cpus=1, in_flight=IN_FLIGHT)

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, row: Row) -> Row:
        key = row["key"]
        note(self._folder, key)
        if (self._folder / "guilty" / key).exists():
            os.kill(os.getpid(), signal.SIGKILL)
        held = self._folder / "hold" / key
        while held.exists():  # The harness takes the file away and kills this process.
            time.sleep(0.005)
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
    """The stage, with its asks as steps: local runs only, since the steps live in this process."""

    def __init__(self, stage: Stage, steps: Steps) -> None:
        self.resources = stage.resources
        self._stage, self._steps = stage, steps

    def __reduce__(self) -> Any:
        return _itself, (self._stage,)

    def setup(self) -> None:
        self._stage.setup()

    def __call__(self, row: Row) -> Any:
        self._steps("asked", 1)
        return self._stage(row)

    def close(self) -> Any:
        return self._stage.close()


def _itself(stage: Stage) -> Stage:
    """What travels to another process: the stage without the steps."""
    return stage


def append_plainly(folder: Path, rows: list[Row], stage: Stage, steps: Steps) -> None:
    """The control: asks everything, appends, knows nothing of what was there."""
    for start in range(0, len(rows), PACE_ROWS):
        answered = [stage(row) for row in rows[start : start + PACE_ROWS]]
        eval_trial.append(folder / "plain.lance", answered, steps)


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


def evaluate_clips(given: argparse.Namespace, steps: Steps, pace: CommitPace) -> None:
    if given.plain:
        eval_trial.append_plainly(given.folder, pace_rows=given.pace_rows, observe=steps)
        return
    outcome = eval_trial.evaluate_in(
        given.folder, engine=given.engine, pace=pace, retry=given.retry, observe=steps
    )
    say("outcome", outcome)


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
    options.add_argument("--pace-rows", type=int, default=PACE_ROWS)
    options.add_argument("--deaths-alone", type=int, default=crash_suspects.DEATHS_ALONE)
    options.add_argument("--retry", action="store_true")
    options.add_argument("--plain", action="store_true")
    given = options.parse_args()
    crash_suspects.DEATHS_ALONE = given.deaths_alone  # type: ignore[misc]  the control's rule
    steps, pace = Steps(given.stop_at), CommitPace(rows=given.pace_rows, seconds=0.5)
    if given.engine == "ray":
        start_ray()
    if given.stage == "eval":
        evaluate_clips(given, steps, pace)
        return
    rows, stage = questions(given.rows), load_stage(given.stage, given.folder)
    if given.engine == "local":
        stage = Announced(stage, steps)
    if given.plain:
        append_plainly(given.folder, rows, stage, steps)
        return
    summary = run_pending_questions(
        rows,
        [stage],
        table=LanceTable(StorageLocation(str(given.folder / "answers.lance")), ANSWERS),
        engine=given.engine,
        pace=pace,
        retry_failed=ALL_FAILURES if given.retry else (),
        observe=steps,
    )
    say("summary", summary)


if __name__ == "__main__":
    main()
