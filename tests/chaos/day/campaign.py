"""Campaign of a chaos day: pushes, pulls, and annotators who answer through Label Studio's API."""

import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from chaos.day.faults import LoadRecord
from chaos.day.services import UNREEL
from chaos.harness import await_gone, descendants
from reward_process import padded
from studio_campaigns import opinion, post, sign_in_at
from unreel.annotation.campaign import AnnotationInterface, Value
from unreel.annotation.interfaces.label_studio_tasks import TASK_KEY, build_label_studio_results
from unreel.annotation.ledger.connection import open_ledger
from unreel.annotation.studio.client import LabelStudioClient, iter_studio_project_tasks
from unreel.annotation.studio.projects import read_stored_projects

CAMPAIGN = "chaos"
PEOPLE = ("ada", "ben")
CLIPS_PER_PUSH = 2
COMMAND_S = 900.0
CALM_TRIES = 8
"""Calls of a command within which it must succeed once the faults are over."""
INTERFACE = AnnotationInterface.REALITY


@dataclass
class CampaignLoad:
    """A growing campaign: new clips are pushed and answers are pulled while people answer."""

    record: LoadRecord
    address: str
    """URL of Label Studio, past the proxy."""
    ledger: str
    state: Path
    bench: Path
    picture: bytes
    environment: Mapping[str, str]
    is_over: threading.Event
    said: dict[tuple[str, str], Value] = field(default_factory=dict)
    """Answers whose POST had a 2xx reply, or that were found after a lost reply."""
    _running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    _n_clips: int = 0

    def find_pid(self, command: str) -> int:
        """Return the id of a running `push` or `pull`, or 0."""
        process = self._running.get(command)
        return process.pid if process is not None and process.poll() is None else 0

    def run(self) -> None:
        """Push, answer and pull until the faults are over, then once more, and compare."""
        works: list[Callable[[], object]] = [self._push_new_clips, lambda: self._call("pull")]
        threads = [threading.Thread(target=self._repeat, args=(work,)) for work in works]
        threads += [
            threading.Thread(target=self._repeat, args=(lambda one=one: self._answer(one),))
            for one in PEOPLE
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._call_until_done("push")
        for person in PEOPLE:
            tries = 0
            while not self._answer(person) and tries < CALM_TRIES:
                tries += 1
            self.record.expect(f"{person} could not answer every task", holds=tries < CALM_TRIES)
        self._call_until_done("pull")
        self._check()

    def _repeat(self, work: Callable[[], object]) -> None:
        while not self.is_over.is_set():
            work()
            self.is_over.wait(2)

    def _push_new_clips(self) -> None:
        """Push, with new clips if people have answered what there is."""
        if len(self.said) >= len(PEOPLE) * (self._n_clips - CLIPS_PER_PUSH):
            for label in ("real", "generated/one"):
                folder = self.bench / label
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{self._n_clips}.mp4").write_bytes(padded(self.picture, self._n_clips))
                self._n_clips += 1
        self._call("push")

    def _call(self, name: str) -> int:
        """Run `unreel annotate push` or `pull`; return its status."""
        people = ",".join(f"{one}={one}@example.org" for one in PEOPLE)
        words = {
            "push": [str(self.bench), "--campaign", CAMPAIGN, "--interface", str(INTERFACE),
                     "--annotators", people, "--overlap", str(len(PEOPLE)), "--trusted"],
            "pull": [CAMPAIGN],
        }[name]  # fmt: skip
        command = [*UNREEL, "annotate", name, *words, "--state", str(self.state), "--json"]
        environment = os.environ | dict(self.environment)  # noqa: TID251  handed on to a child
        log = self.state / f"{name}.log"
        with log.open("wb") as err:
            self._running[name] = process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=err, env=environment
            )
        kin: set[int] = set()
        until_s = time.monotonic() + COMMAND_S
        while (status := process.poll()) is None:
            kin |= descendants(process.pid)
            if time.monotonic() > until_s:
                self.record.expect(f"{name} took over {COMMAND_S:g} s", holds=False)
                process.kill()
            time.sleep(1)
        await_gone(kin)
        words_of_it = log.read_text(errors="replace")[-1500:]
        self.record.count(f"{name}: status {status}")
        # Before the first push the campaign is unknown: status 2 as well.
        self.record.expect(f"{name}: {status}, {words_of_it}", holds=status in {0, 2, -9})
        self.record.expect(
            f"{name}: a traceback, {words_of_it}", holds="Traceback" not in words_of_it
        )
        return status

    def _call_until_done(self, name: str) -> None:
        is_done = any(self._call(name) == 0 for _ in range(CALM_TRIES))
        self.record.expect(f"{name} did not succeed without faults", holds=is_done)

    def _answer(self, person: str) -> bool:
        """Let a person answer all open tasks; return whether none is left."""
        try:
            with open_ledger(self.ledger) as ledger:
                tasks = {task.id: task for task in ledger.tasks(CAMPAIGN)}
                projects = read_stored_projects(ledger, CAMPAIGN).values()
            rooms = [room.project for room in projects if room.annotator == person]
            with sign_in_at(self.address, self.state, f"{person}@example.org") as client:
                for room in rooms:
                    for shown in iter_studio_project_tasks(client, room, fields=("data",)):
                        ours = str(shown["data"][TASK_KEY])
                        if (person, ours) in self.said:
                            continue
                        value = opinion(INTERFACE, f"{person} {ours}")
                        result = build_label_studio_results(value, tasks[ours], swapped=False)
                        self._post(client, int(shown["id"]), result)
                        self.said[person, ours] = value
        except Exception as error:  # noqa: BLE001  the server or the ledger is away: try again
            self.record.count(f"people: {type(error).__name__}, tried again")
            return False
        return True

    def _post(self, client: LabelStudioClient, task: int, result: object) -> None:
        """Submit an answer, unless the task has one: as a person sees after a lost reply."""
        if client.get(f"/api/tasks/{task}/annotations/"):
            self.record.count("answers found after a lost reply")
            return
        post(client, task, result)
        self.record.count("answers with a 2xx reply")

    def _check(self) -> None:
        with open_ledger(self.ledger) as ledger:
            records = [record for _, record in ledger.records(CAMPAIGN)]
            n_assigned = len(list(ledger.assignments(CAMPAIGN)))
        stored = {(one.annotator, one.task): one.outcome for one in records}
        twice = [key for key, n in Counter((r.annotator, r.task) for r in records).items() if n > 1]
        lost = [key for key, value in self.said.items() if stored.get(key) != value]
        more = stored.keys() - self.said.keys()
        self.record.count("assignments", n_assigned)
        self.record.count("answers submitted", len(self.said))
        self.record.count("judgements in the ledger", len(records))
        self.record.expect(f"{len(lost)} judgements lost or changed", holds=not lost)
        self.record.expect(f"{len(twice)} judgements stored twice", holds=not twice)
        self.record.expect(f"{len(more)} judgements of nobody", holds=not more)
        self.record.expect("an assignment has no answer", holds=n_assigned == len(self.said))
