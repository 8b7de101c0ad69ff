"""How fast push and pull are, against Label Studio's own bulk calls on the same server in the same run.

    unreel annotate up --state STATE --ledger LEDGER &
    python benchmarks/studio_rate.py --state STATE --tasks 5000

Push is compared with one import of all tasks, in turns, by medians of three; pull with one export of all annotated tasks as JSON. The
tasks are drawn, their clips are not there: nothing is copied or shown. Projects are taken away again.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from statistics import median

from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationTask,
    Annotator,
    AnnotatorClipCopy,
    Campaign,
    TaskAssignment,
    VoteAnswer,
)
from unreel.annotation.campaign_push import AssignmentPushRequest, push_assignments
from unreel.annotation.interfaces.label_studio_tasks import (
    build_label_studio_results,
    build_label_studio_task_data,
    get_annotation_screen,
)
from unreel.annotation.ledger.connection import open_ledger
from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.studio.client import (
    LabelStudioClient,
    create_annotator_accounts,
    find_studio_connection,
)
from unreel.annotation.studio.projects import open_annotator_project, read_stored_projects
from unreel.annotation.studio.pull import pull_campaign_annotations
from unreel.core.content_ids import digest
from unreel.core.judgement import Label
from unreel.core.safe_names import read_clip_id

PERSON = Annotator("rate", "rate@example.org")
TURNS = 3
"""Import and push take turns: another's work on the machine hits both."""
SCREEN = get_annotation_screen(AnnotationInterface.REALITY)


def main(words: Sequence[str] | None = None) -> dict[str, float]:
    """Measure what `words` ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--tasks", type=int, default=5000)
    parser.add_argument(
        "--ledger", default="", help="of SQLite, in a folder of its own, by default"
    )
    asked = parser.parse_args(words)
    with (
        tempfile.TemporaryDirectory(prefix="unreel-rate-") as folder,
        open_ledger(asked.ledger or f"{folder}/ledger.db") as ledger,
        LabelStudioClient(find_studio_connection(asked.state)) as client,
    ):
        figures = measure(client, ledger, asked.state, n=asked.tasks)
    print(json.dumps(figures, indent=2))
    return figures


def measure(client: LabelStudioClient, ledger: Ledger, state: Path, *, n: int) -> dict[str, float]:
    """Tasks a second of all four, and the two ratios."""
    owner = create_annotator_accounts(client, [PERSON], folder=state)[PERSON.name]
    name = f"rate-{digest('run', str(time.time_ns()))[:8]}"
    pulled = _prepare(ledger, f"{name}-pull", n)
    pushed = [_prepare(ledger, f"{name}-push-{turn}", n) for turn in range(TURNS)]
    made: list[int] = []
    try:
        figures = {"tasks": float(n)}
        imports_s, pushes_s = [], []
        for campaign, tasks in pushed:
            imports_s.append(_time_import(client, tasks, made))
            began_s = time.monotonic()
            push_assignments(_delivery(client, ledger, campaign, owner), on_sent=lambda _n: None)
            pushes_s.append(time.monotonic() - began_s)
        figures["import_per_s"] = n / median(imports_s)
        figures["push_per_s"] = n / median(pushes_s)
        room = open_annotator_project(
            client, ledger, pulled[0], screen=SCREEN, place=(PERSON.name, 1, owner)
        )
        _answer(client, room.project, pulled[1], owner)
        began_s = time.monotonic()
        exported = client.get(f"/api/projects/{room.project}/export", exportType="JSON")
        figures["export_per_s"] = n / (time.monotonic() - began_s)
        began_s = time.monotonic()
        got = pull_campaign_annotations(
            client, ledger, pulled[0].name, on_project=lambda _told: None
        )
        figures["pull_per_s"] = n / (time.monotonic() - began_s)
        if not len(exported) == got.new == n:
            print(f"exported {len(exported)}, pulled {got}", file=sys.stderr)
            raise SystemExit(1)
    finally:
        for campaign, _ in (*pushed, pulled):
            made += [r.project for r in read_stored_projects(ledger, campaign.name).values()]
        for project in made:
            client.delete(f"/api/projects/{project}/")
    figures["push_ratio"] = figures["push_per_s"] / figures["import_per_s"]
    figures["pull_ratio"] = figures["pull_per_s"] / figures["export_per_s"]
    return {key: round(figure, 2) for key, figure in figures.items()}


def _prepare(ledger: Ledger, name: str, n: int) -> tuple[Campaign, list[AnnotationTask]]:
    campaign = Campaign(
        name=name,
        interface=AnnotationInterface.REALITY,
        benchmark="drawn",
        overlap=1,
        guidelines=SCREEN.guidelines,
        interface_version=SCREEN.version,
    )
    tasks = [_task(f"{name}-{number:06d}") for number in range(n)]
    ledger.enlist([PERSON])
    ledger.open_campaign(campaign)
    ledger.add_tasks(name, tasks)
    ledger.assign(name, [_place(task, position) for position, task in enumerate(tasks)])
    return campaign, tasks


def _task(name: str) -> AnnotationTask:
    copy = AnnotatorClipCopy(
        clip=read_clip_id(digest("clip", name), "drawn"),
        location=f"{name}.mp4",
        rate=Fraction(24),
        n_frames=48,
        width=320,
        height=180,
    )
    return AnnotationTask(names=(name,), copies=(copy,))


def _place(task: AnnotationTask, position: int) -> TaskAssignment:
    return TaskAssignment(annotator=PERSON.name, task=task.id, batch=1, position=position)


def _urls(task: AnnotationTask) -> list[str]:
    return [f"/data/local-files/?d=clips/{copy.location}" for copy in task.copies]


def _delivery(
    client: LabelStudioClient, ledger: Ledger, campaign: Campaign, owner: int
) -> AssignmentPushRequest:
    return AssignmentPushRequest(
        client=client,
        ledger=ledger,
        campaign=campaign,
        screen=SCREEN,
        accounts={PERSON.name: owner},
        find_urls=_urls,
    )


def _time_import(client: LabelStudioClient, tasks: list[AnnotationTask], made: list[int]) -> float:
    """Seconds of Label Studio's own bulk call, with the project that it needs."""
    entries = [{"data": _data(task, i)} for i, task in enumerate(tasks)]
    began_s = time.monotonic()
    project = client.post("/api/projects/", {"title": "rate", "label_config": SCREEN.config})
    made.append(int(project["id"]))
    client.post(f"/api/projects/{made[-1]}/import", entries)
    return time.monotonic() - began_s


def _data(task: AnnotationTask, position: int) -> dict[str, str | int]:
    return build_label_studio_task_data(SCREEN, task, _place(task, position), _urls(task))


def _answer(
    client: LabelStudioClient, project: int, tasks: list[AnnotationTask], owner: int
) -> None:
    """Tasks with answers, by the same bulk call: posting them one by one would take half an hour.

    Nobody sent them by hand, so pull keeps them as not their owner's; it reads and keeps as much.
    """
    for start in range(0, len(tasks), 1000):
        some = enumerate(tasks[start : start + 1000], start)
        entries = [
            {
                "data": _data(task, i),
                "annotations": [
                    {
                        "completed_by": owner,
                        "lead_time": 9.5,
                        "result": build_label_studio_results(
                            VoteAnswer(label=Label.REAL), task, swapped=False
                        ),
                    }
                ],
            }
            for i, task in some
        ]
        client.post(f"/api/projects/{project}/import", entries)


if __name__ == "__main__":
    main()
