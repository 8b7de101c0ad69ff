"""The whole loop, command by command: curate, push, judge, pull, report, publish, eval, report."""

import json
import random
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("jinja2", reason="needs the extra report: pip install 'unreel[report]'")

from studio import Studio
from studio_campaigns import post, sign_in
from unreel.annotate.campaign import Task
from unreel.annotate.interfaces.answers import write_result
from unreel.annotate.interfaces.data import TASK_KEY
from unreel.annotate.judgements import Traced
from unreel.annotate.ledger.opening import open_ledger
from unreel.annotate.studio.reading import read_tasks
from unreel.annotate.studio.rooms import remembered_rooms
from unreel.benchmarks.entry import Entry
from unreel.benchmarks.opening import open_benchmark
from unreel.benchmarks.people import read_people
from unreel.core.box import Box
from unreel.core.estimate import Estimate
from unreel.core.judgement import Label
from unreel.core.trace import BoxAt, Trace
from unreel.media.synthesise import ClipRecipe, synthesise

pytestmark = [pytest.mark.xdist_group("studio"), pytest.mark.timeout(900)]

UNREEL = (sys.executable, "-c", "from unreel.cli.main import main; main()")
SKILLS = {"ada": 0.0, "ben": 0.03, "cleo": 0.25}
"""How far each person's boxes lie beside the fault, in parts of the frame."""
RECIPE = """
name = "walk"
seed = 4
[source]
path = "films"
licence = "CC0"
[inject]
categories = ["sudden-blurring", "background-distortion"]
strength = 1.0
[freeze]
shares = [0, 0, 1]
"""


class _Typed:
    """Commands as a person types them, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *words: object, status: int = 0) -> str:
        done = subprocess.run(
            [*UNREEL, *map(str, words)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stderr
        return done.stdout


def test_from_drawn_clips_to_a_report_with_people_in_it(studio: Studio, tmp_path: Path) -> None:
    typed = _Typed(tmp_path)
    _draw_films(tmp_path, n=5)
    bench = typed("curate", "run", "recipe.toml", "--trusted").strip()
    truth = _entries(tmp_path / bench)
    assert sum(entry.label is Label.GENERATED for entry in truth.values()) == 5

    people = ",".join(f"{name}={name}@example.org" for name in SKILLS)
    where = ("--ledger", tmp_path / "ledger.db", "--state", studio.folder)
    asked = ("--campaign", "walk", "--interface", "trace", "--overlap", "3", "--gold", "2")
    typed("annotate", "push", bench, *asked, "--annotators", people, *where)
    n_sent = _judge(studio, tmp_path / "ledger.db", truth)
    assert n_sent == 30
    pulled = json.loads(typed("annotate", "pull", "walk", *where, "--json"))
    assert (pulled["new"], pulled["quarantined"]) == (30, 0)

    typed("annotate", "report", "walk", "--out", "campaign", *where)
    page = (tmp_path / "campaign" / "index.html").read_text(encoding="utf-8")
    assert f"{studio.address}/projects/" in page
    assert len(list((tmp_path / "campaign" / "media").iterdir())) >= 1

    told = json.loads(
        typed("annotate", "publish", "walk", "--out", "settled", *where[:2], "--json")
    )
    assert (told["n_clips"], told["left_out"]) == (10, [])
    settled = _entries(tmp_path / "settled")
    assert set(settled) == set(truth)
    _require_found(settled, truth)
    _require_people(tmp_path / "settled")

    run = ("--model", "always-generated", "--trusted", "--out")
    typed("eval", "settled", "--protocol", "trace", *run, "runs/trace")
    typed("report", "runs/trace", "--out", "page", "--media", "none")
    report = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    assert "people: majority" in report
    assert "3 people judged these clips in the campaign walk" in report


def _draw_films(folder: Path, *, n: int) -> None:
    (folder / "films" / "real").mkdir(parents=True)
    for number in range(n):
        scene = ClipRecipe(scene="street", width=320, height=192, n_frames=48, seed=number)
        (folder / "films" / "real" / f"{number}.mp4").write_bytes(synthesise(scene))
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")


def _entries(folder: Path) -> dict[str, Entry]:
    return {row.name: row for row in open_benchmark(folder) if isinstance(row, Entry)}


def _judge(studio: Studio, ledger: Path, truth: Mapping[str, Entry]) -> int:
    """Everybody answers all their tasks through the server's API, as themselves."""
    n_sent = 0
    with open_ledger(str(ledger)) as opened:
        tasks = {task.id: task for task in opened.tasks("walk")}
        for room in remembered_rooms(opened, "walk").values():
            with sign_in(studio, f"{room.annotator}@example.org") as own:
                for shown in read_tasks(own, room.project, fields=("data",)):
                    task = tasks[shown["data"][TASK_KEY]]
                    value = _see(room.annotator, task, truth[task.names[0]])
                    post(own, int(shown["id"]), write_result(value, task, swapped=False))
                    n_sent += 1
    return n_sent


def _see(annotator: str, task: Task, entry: Entry) -> Traced:
    """What that person makes of the clip: its fault, with boxes as far beside it as their skill says."""
    if entry.label is Label.REAL:
        return Traced(traces=(), label=Label.REAL)
    dice = random.Random(f"{annotator} {task.id}")
    by = SKILLS[annotator] * dice.uniform(0.5, 1)
    return Traced(traces=tuple(_beside(trace, by) for trace in entry.traces), label=Label.GENERATED)


def _beside(trace: Trace, by: float) -> Trace:
    marks = []
    for mark in trace.track[:: max(1, len(trace.track) // 4)]:
        step = by if mark.box.x1 + by <= 1 else -min(by, mark.box.x0)
        box = Box(mark.box.x0 + step, mark.box.y0, mark.box.x1 + step, mark.box.y1)
        marks.append(BoxAt(mark.at_us, box))
    return replace(trace, track=tuple(marks))


def _require_found(settled: Mapping[str, Entry], truth: Mapping[str, Entry]) -> None:
    """Two careful people outvote the third: the fault is where it was put in."""
    for name, entry in settled.items():
        if truth[name].label is Label.REAL:
            assert entry.traces == ()
            continue
        (found,), (put_in,) = entry.traces, truth[name].traces
        assert found.track[0].box.iou(put_in.track[0].box) > 0.6
        assert abs(found.span.start_us - put_in.span.start_us) < 100_000
        assert entry.rating is not None


def _require_people(folder: Path) -> None:
    people = read_people(folder)
    assert people is not None
    rows: dict[tuple[str, str], Any] = {(row.protocol, row.name): row for row in people.rows}
    majority = rows["trace", "majority"]["accuracy"]
    assert isinstance(majority, Estimate)
    assert majority.value == 100
    overlaps = sorted(
        row["box-iou"].value
        for (protocol, name), row in rows.items()
        if protocol == "trace" and name != "majority"
    )
    assert overlaps[0] < 30 < overlaps[1], "the careless one is told from the careful ones"
