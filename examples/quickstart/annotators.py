"""Simulated annotators: each signs in to Label Studio and answers all tasks of a campaign through its API.

    python annotators.py CAMPAIGN BENCHMARK LEDGER STATE

BENCHMARK has the ground truth, from which the answers are made. The third annotator draws boxes beside the fault.
"""

import random
import sys
from dataclasses import replace
from pathlib import Path

import httpx2

from unreel.annotation.campaign import AnnotationTask, TraceAnswer
from unreel.annotation.interfaces.label_studio_tasks import TASK_KEY, build_label_studio_results
from unreel.annotation.ledger.connection import open_ledger
from unreel.annotation.studio.client import (
    LabelStudioClient,
    LabelStudioConnection,
    find_studio_connection,
    iter_studio_project_tasks,
    read_account_passwords,
)
from unreel.annotation.studio.projects import read_stored_projects
from unreel.benchmarks.entry import Entry
from unreel.benchmarks.loader import open_benchmark
from unreel.core.box import Box
from unreel.core.judgement import Label
from unreel.core.trace import BoxAt, Trace

SHIFTS = {"ada": 0.0, "ben": 0.03, "cleo": 0.25}
"""Largest distance of an annotator's boxes from the fault, as a fraction of the frame's width."""


def main(campaign: str, benchmark: str, ledger_url: str, state: str) -> None:
    """Answer all tasks of `campaign` and print their number."""
    entries = {row.name: row for row in open_benchmark(Path(benchmark)) if isinstance(row, Entry)}
    n_answers = 0
    with open_ledger(ledger_url) as ledger:
        tasks = {task.id: task for task in ledger.tasks(campaign)}
        for project in read_stored_projects(ledger, campaign).values():
            with sign_in(Path(state), f"{project.annotator}@example.org") as client:
                for shown in iter_studio_project_tasks(client, project.project, fields=("data",)):
                    task = tasks[shown["data"][TASK_KEY]]
                    answer = judge(project.annotator, task, entries[task.names[0]])
                    result = build_label_studio_results(answer, task, swapped=False)
                    body = {"result": result, "lead_time": 12.5}
                    client.post(f"/api/tasks/{shown['id']}/annotations/", body)
                    n_answers += 1
    print(f"{n_answers} answers of {len(SHIFTS)} simulated annotators")


def sign_in(state: Path, login: str) -> LabelStudioClient:
    """Return a client with the annotator's own token, by the password that `push` created."""
    address = find_studio_connection(state).address
    with httpx2.Client(base_url=address, timeout=120, trust_env=False) as browser:
        browser.get("/user/login/")
        form = {"email": login, "password": read_account_passwords(state)[login]}
        form["csrfmiddlewaretoken"] = browser.cookies["csrftoken"]
        browser.post("/user/login/", data=form)
        token = browser.get("/api/current-user/token").raise_for_status().json()["token"]
    return LabelStudioClient(LabelStudioConnection(address=address, token=token))


def judge(annotator: str, task: AnnotationTask, entry: Entry) -> TraceAnswer:
    """Return the answer of one annotator: the label, and the fault with shifted boxes."""
    if entry.label is Label.REAL:
        return TraceAnswer(traces=(), label=Label.REAL)
    shift = SHIFTS[annotator] * random.Random(f"{annotator} {task.id}").uniform(0.5, 1)
    traces = tuple(shift_trace(trace, shift) for trace in entry.traces)
    return TraceAnswer(traces=traces, label=Label.GENERATED)


def shift_trace(trace: Trace, shift: float) -> Trace:
    """Return the trace with about four boxes, each moved sideways."""
    track = []
    for key_frame in trace.track[:: max(1, len(trace.track) // 4)]:
        box = key_frame.box
        by = shift if box.x1 + shift <= 1 else -min(shift, box.x0)
        track.append(BoxAt(key_frame.at_us, Box(box.x0 + by, box.y0, box.x1 + by, box.y1)))
    return replace(trace, track=tuple(track))


if __name__ == "__main__":
    main(*sys.argv[1:])
