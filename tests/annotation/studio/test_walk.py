"""The guide to campaigns, command by command: set up, push, judge, pull, report, publish, eval, report."""

import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("jinja2", reason="needs the extra report: pip install 'unreel[report]'")

from docs.test_consoles import read_console
from postgres import USER, Postgres
from studio import Studio, free_port, studio_program
from studio_campaigns import post, sign_in_at
from synthesise import ClipRecipe, synthesise
from unreel.annotation.campaign import AnnotationTask
from unreel.annotation.interfaces.label_studio_tasks import TASK_KEY, build_label_studio_results
from unreel.annotation.judgements import TraceAnswer
from unreel.annotation.ledger.connection import open_ledger
from unreel.annotation.studio.client import iter_studio_project_tasks
from unreel.annotation.studio.projects import read_stored_projects
from unreel.annotation.studio.settings import find_studio_connection
from unreel.benchmarks.entry import Entry
from unreel.benchmarks.human_scores import read_human_scores
from unreel.benchmarks.loader import open_benchmark
from unreel.core.box import Box
from unreel.core.estimate import Estimate
from unreel.core.judgement import Label
from unreel.core.trace import BoxAt, Trace
from warm import Warm

pytestmark = [pytest.mark.xdist_group("studio"), pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "annotation.md"
UNREEL = (sys.executable, "-c", "from unreel.cli.main import main; main()")
SKILLS = {"ada": 0.0, "ben": 0.03, "cleo": 0.25}
"""How far each person's boxes lie beside the fault, in parts of the frame."""


class _Reader:
    """Somebody who types the commands of the page in one folder."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.environment = folder, environment
        self.told: dict[str, str] = {}
        """What each command printed."""
        self.up: subprocess.Popen[str] | None = None

    def type(self, command: str) -> None:
        done = subprocess.run(
            [shutil.which("bash") or "bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        self.told[command.partition("#")[0].strip()] = done.stdout

    def start(self, command: str) -> None:
        """Start Label Studio as in a terminal of its own, and wait until its address is told."""
        words = [*UNREEL, *shlex.split(command, comments=True)[1:], "--port", str(free_port())]
        self.up = subprocess.Popen(
            words,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.up.stdout is not None
        assert self.up.stdout.readline().startswith("http://"), self.end()[1]

    def end(self) -> tuple[int, str]:
        """End it as Ctrl-C would; its status and what it said."""
        if self.up is None:
            return 0, ""
        up, self.up = self.up, None
        up.send_signal(signal.SIGTERM)
        said = up.communicate(timeout=60)[1]
        return up.returncode, said


@pytest.fixture
def reader(studio: Studio, postgres: Postgres, warm: Warm, tmp_path: Path) -> Iterator[_Reader]:
    """The folder of somebody who has films, and Label Studio's program beside them."""
    programs, own = tmp_path / "programs", tmp_path / "state" / "studio"
    for folder in (programs, own, tmp_path / "films" / "real", tmp_path / "label-studio" / "bin"):
        folder.mkdir(parents=True)
    warm.write_program(programs)
    (tmp_path / "label-studio" / "bin" / "label-studio").symlink_to(studio_program())
    for number in range(5):
        scene = ClipRecipe(scene="street", width=320, height=192, n_frames=48, seed=number)
        (tmp_path / "films" / "real" / f"{number}.mp4").write_bytes(synthesise(scene))
    recipe = re.search(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert recipe is not None
    (tmp_path / "recipe.toml").write_text(recipe[1], encoding="utf-8")
    # On the tables of the session's server, which are made already: they know its secrets.
    for name in ("secrets.json", "accounts.json"):
        if (studio.folder / name).exists():
            shutil.copy(studio.folder / name, own / name)
    environment = {
        "PATH": f"{programs}:{postgres.programs}:/usr/bin:/bin",
        "UNREEL_STATE": str(tmp_path / "state"),
        "PGHOST": "127.0.0.1",
        "PGPORT": str(postgres.port),
        "PGUSER": USER,
        "PGDATABASE": "postgres",
        "PGPASSWORD": postgres.password,
    }
    made = _Reader(tmp_path, environment)
    yield made
    made.end()


def _read_commands(studio: Studio, postgres: Postgres) -> list[str]:
    """Commands of the page without the install, for the ports and databases of this session."""
    database = studio.plan.database.rpartition("/")[2].removesuffix("_studio")
    postgres.drop_database(database)
    found = []
    for command, _ in read_console(PAGE.read_text(encoding="utf-8")):
        if command.startswith(("pip install", "python3 -m venv", "label-studio/bin/pip")):
            continue
        here = command.removeprefix("sudo -u postgres ").replace("5432", str(postgres.port))
        found.append(re.sub(r"\bcampaigns\b", database, here))
    return found


def test_every_command_of_the_page_works_from_films_to_a_report_with_people_in_it(
    studio: Studio, postgres: Postgres, reader: _Reader
) -> None:
    truth: Mapping[str, Entry] = {}
    commands = _read_commands(studio, postgres)
    reader.type('psql -c "DROP ROLE IF EXISTS annotate"')  # of an earlier try on this server
    for command in commands:
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            reader.environment[name] = value
        elif "annotate up" in command:
            reader.start(command)
        else:
            reader.type(command)
        if "CREATE ROLE" in command:
            reader.type(
                f'psql -c "GRANT {USER} TO annotate"'
            )  # the session's tables are its user's
        if "annotate links" in command:
            truth = _entries(reader.folder / "curations" / "walk" / "benchmark")
            assert _judge(reader, truth) == 30
    assert "30 new annotations of 30 seen" in reader.told["unreel annotate pull walk"]
    assert "0 new annotations of 30 seen" in reader.told["unreel annotate pull walk --all"]
    _require_written(reader.folder, truth)
    status, said = reader.end()
    assert status == 0, said
    assert not (reader.folder / "state" / "studio" / "studio.json").exists()


def test_the_page_installs_the_label_studio_that_was_tested() -> None:
    pinned = (ROOT / "constraints" / "studio.txt").read_text(encoding="utf-8")
    version = re.search(r"^label-studio==(\S+)", pinned, re.MULTILINE)
    assert version is not None
    assert f"pip install label-studio=={version[1]}\n" in PAGE.read_text(encoding="utf-8")


def _require_written(folder: Path, truth: Mapping[str, Entry]) -> None:
    assert "/projects/" in (folder / "campaign" / "index.html").read_text(encoding="utf-8")
    assert len(list((folder / "campaign" / "media").iterdir())) >= 1
    settled = _entries(folder / "settled")
    assert set(settled) == set(truth)
    _require_found(settled, truth)
    _require_people(folder / "settled")
    report = (folder / "page" / "index.html").read_text(encoding="utf-8")
    assert "people: majority" in report
    assert "3 people judged these clips in the campaign walk" in report
    assert "ledger_annotations" in (folder / "ledger.sql").read_text(encoding="utf-8")


def _entries(folder: Path) -> dict[str, Entry]:
    return {row.name: row for row in open_benchmark(folder) if isinstance(row, Entry)}


def _judge(reader: _Reader, truth: Mapping[str, Entry]) -> int:
    """Everybody answers all their tasks through the server's API, as themselves."""
    n_sent = 0
    studio = find_studio_connection(reader.folder / "state" / "studio")
    with open_ledger(reader.environment["UNREEL_LEDGER"]) as opened:
        tasks = {task.id: task for task in opened.tasks("walk")}
        for room in read_stored_projects(opened, "walk").values():
            login = f"{room.annotator}@example.org"
            with sign_in_at(studio.address, reader.folder / "state" / "studio", login) as own:
                for shown in iter_studio_project_tasks(own, room.project, fields=("data",)):
                    task = tasks[shown["data"][TASK_KEY]]
                    value = _see(room.annotator, task, truth[task.names[0]])
                    post(
                        own,
                        int(shown["id"]),
                        build_label_studio_results(value, task, swapped=False),
                    )
                    n_sent += 1
    return n_sent


def _see(annotator: str, task: AnnotationTask, entry: Entry) -> TraceAnswer:
    """What that person makes of the clip: its fault, with boxes as far beside it as their skill says."""
    if entry.label is Label.REAL:
        return TraceAnswer(traces=(), label=Label.REAL)
    dice = random.Random(f"{annotator} {task.id}")
    by = SKILLS[annotator] * dice.uniform(0.5, 1)
    return TraceAnswer(
        traces=tuple(_beside(trace, by) for trace in entry.traces), label=Label.GENERATED
    )


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
    people = read_human_scores(folder)
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
