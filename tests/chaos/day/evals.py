"""Evaluations of a chaos day: runs one after the other, each resumed until it is whole."""

import json
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from chaos.day.faults import LoadRecord
from chaos.harness import await_gone, descendants
from reliability.trial import Started, Trial
from unreel.engine.location import StorageLocation

ATTEMPT_S = 900.0
STATUSES = {0, 1, 2, -9}
"""Ends of an attempt: done, failed questions, fault of the machine, kill -9."""
MOST_CALM_ATTEMPTS = 6
"""Attempts in which a run must be whole once the faults are over."""


@dataclass
class EvalLoad:
    """`unreel eval`, again and again until the faults are over; each run is resumed after each end."""

    record: LoadRecord
    trial: Trial
    place: Callable[[int], StorageLocation]
    """Location of a run by its number."""
    truth: tuple[Any, Mapping[str, str]]
    """Scores and answers of an undisturbed run."""
    is_over: threading.Event
    started: Started | None = None
    _n_asked_before: int = 0
    """Number of questions before the current attempt."""

    def find_pid(self) -> int:
        """Return the id of the running command once it has asked a question; else 0."""
        process = self.started and self.started.process
        is_at_work = len(self.trial.chat.asked) > self._n_asked_before
        return process.pid if process and process.poll() is None and is_at_work else 0

    def run(self) -> None:
        """Run evaluations until the faults are over and the last one is whole."""
        number = 0
        while not self.is_over.is_set():
            trial = replace(self.trial, place=self.place(number))
            self._run_until_whole(trial)
            if Path(trial.place.uri).is_dir():
                shutil.rmtree(trial.place.uri)
            number += 1

    def _run_until_whole(self, trial: Trial) -> None:
        scores, texts = self.truth
        committed: dict[str, str] = {}
        status, calm_attempts = -1, 0
        while status != 0 and calm_attempts <= MOST_CALM_ATTEMPTS:
            calm_attempts += self.is_over.is_set()
            retried = replace(trial, options=(*trial.options, "--retry-failed"))
            self._n_asked_before = n_asked = len(trial.chat.asked)
            status = self._attempt(retried if status == 1 else trial)
            asked = trial.chat.asked[n_asked:]
            committed = self._check(trial, committed, asked)
        self.record.expect(f"{trial.place.uri} was not whole at the end", holds=status == 0)
        if status == 0:
            assert self.started is not None
            ended = json.loads(self.started.out.read_text())
            self.record.count("runs ended")
            self.record.count("answers", len(committed))
            self.record.expect(f"{trial.place.uri}: other answers", holds=committed == texts)
            self.record.expect(f"{trial.place.uri}: other scores", holds=ended["scores"] == scores)

    def _attempt(self, trial: Trial) -> int:
        self.started = started = trial.start()
        kin: set[int] = set()
        until_s = time.monotonic() + ATTEMPT_S
        while (status := started.process.poll()) is None:
            kin |= descendants(started.process.pid)
            if time.monotonic() > until_s:
                self.record.expect(f"an attempt took over {ATTEMPT_S:g} s", holds=False)
                started.process.kill()
            time.sleep(1)
        await_gone(kin)
        self.record.count(f"attempts with status {status}")
        if "ray" not in trial.options:  # Ray prints tracebacks of its own
            self.record.expect(f"status {status}: {started.said[-500:]}", holds=status in STATUSES)
            is_plain = "Traceback" not in started.said
            self.record.expect(f"a traceback: {started.said[-1500:]}", holds=is_plain)
        return status

    def _check(self, trial: Trial, before: dict[str, str], asked: list[str]) -> dict[str, str]:
        """Compare the stored answers after an attempt with those before it."""
        after = self._read_answers(trial)
        lost = [key for key in before if after.get(key) != before[key]]
        self.record.expect(f"{len(lost)} committed answers lost or changed", holds=not lost)
        repeated = [key for key in asked if key in before]
        self.record.expect(f"{len(repeated)} committed questions repeated", holds=not repeated)
        in_flight = set(asked) - set(after)
        self.record.count("committed answers seen again", len(before))
        self.record.count("questions asked", len(asked))
        self.record.count("repeated: reply lost, same attempt", len(asked) - len(set(asked)))
        self.record.count("repeated: in flight or in the last commit window", len(in_flight))
        most = max(self.record.counts["most in flight at one end"], len(in_flight))
        self.record.counts["most in flight at one end"] = most
        return after

    def _read_answers(self, trial: Trial) -> dict[str, str]:
        until_s = time.monotonic() + ATTEMPT_S
        while True:
            try:
                return trial.texts()
            except AssertionError as error:
                self.record.expect(f"{trial.place.uri}: doubled keys {error}", holds=False)
                return {row["key"]: row["text"] for row in trial.table("answers").rows()}
            except Exception:
                if time.monotonic() > until_s:
                    raise
                time.sleep(1)  # the store is away
