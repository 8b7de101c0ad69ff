"""A campaign from the command line: up, push, links, pull, status."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from postgres import Postgres
from studio import Studio, free_port, studio_program
from studio_campaigns import post, sign_in
from synthesise import ClipRecipe, synthesise
from unreel.annotation.campaign import ScreeningAnswer, VoteAnswer
from unreel.annotation.interfaces.label_studio_tasks import TASK_KEY, build_label_studio_results
from unreel.annotation.ledger.connection import open_ledger
from unreel.annotation.studio.client import iter_studio_project_tasks, read_account_passwords
from unreel.annotation.studio.projects import read_stored_projects
from unreel.core.judgement import Label

pytestmark = [pytest.mark.xdist_group("studio"), pytest.mark.timeout(900)]

UNREEL = (sys.executable, "-c", "from unreel.cli.main import main; main()", "annotate")
PEOPLE = "ada=ada@example.org,ben=ben@example.org"


def run(*words: object, status: int = 0) -> Any:
    done = subprocess.run(
        [*UNREEL, *map(str, words), "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    folder = tmp_path / "bench"
    for number, place in enumerate(["real", "real", "generated/secret-model"]):
        (folder / place).mkdir(parents=True, exist_ok=True)
        clip = synthesise(ClipRecipe(n_frames=8, seed=number))
        (folder / place / f"clip{number}.mp4").write_bytes(clip)
    (folder / "real" / "broken.mp4").write_bytes(b"no clip")
    return folder


def test_a_campaign_is_pushed_answered_pulled_and_told(
    studio: Studio, bench: Path, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.db"
    where = ("--ledger", ledger, "--state", studio.folder)
    order = ("push", bench, "--campaign", "told", "--interface", "reality", "--annotators", PEOPLE)
    order = (*order, "--overlap", "2", "--gold", "1")
    first = run(*order, *where, status=1)
    assert (first["tasks"], first["pushed"]["sent"]) == (3, 6)
    (broken,) = first["failures"]
    assert "broken" in broken
    (bench / "real" / "broken.mp4").unlink()
    again = run(*order, *where)
    assert (again["pushed"]["sent"], again["pushed"]["there"], again["batch"]) == (0, 6, 1)

    links = run("links", "told", *where)
    assert [link["annotator"] for link in links] == ["ada", "ben"]
    with open_ledger(str(ledger)) as opened:
        tasks = {task.id: task for task in opened.tasks("told")}
        assert sum(task.known is not None for task in tasks.values()) == 1
        for room in read_stored_projects(opened, "told").values():
            with sign_in(studio, f"{room.annotator}@example.org") as own:
                for shown in iter_studio_project_tasks(own, room.project, fields=("data",)):
                    text = json.dumps(shown["data"])
                    assert not any(word in text for word in ("secret-model", "clip0", "generated"))
                    _require_playable(studio, room.annotator, shown["data"]["video"])
                    task = tasks[shown["data"][TASK_KEY]]
                    value = VoteAnswer(label=Label.REAL)
                    post(
                        own,
                        int(shown["id"]),
                        build_label_studio_results(value, task, swapped=False),
                    )
    assert run("pull", "told", *where)["new"] == 6
    assert run("pull", "told", *where)["new"] == 0
    told = run("status", "told", "--ledger", ledger)
    assert [(p["annotator"], p["done"]) for p in told["people"]] == [("ada", 3), ("ben", 3)]
    assert told["people"][0]["agreement"]["value"] == 1.0
    assert told["settled"] == 3


def _require_playable(studio: Studio, annotator: str, url: str) -> None:
    """The browser of that annotator gets the copy in parts; nobody gets it without a login."""
    login = f"{annotator}@example.org"
    assert httpx2.get(studio.address + url, trust_env=False, timeout=60).status_code != 200
    with httpx2.Client(base_url=studio.address, timeout=60, trust_env=False) as browser:
        browser.get("/user/login/")
        form = {"email": login, "password": read_account_passwords(studio.folder)[login]}
        form["csrfmiddlewaretoken"] = browser.cookies["csrftoken"]
        browser.post("/user/login/", data=form)
        part = browser.get(url, headers={"Range": "bytes=0-99"})
        assert part.status_code == 206, part.text[:300]
        assert b"ftyp" in part.content
        outside = browser.get("/data/local-files/", params={"d": "../secrets.json"})
        assert outside.status_code != 200


def test_new_clips_become_a_batch_of_their_own(studio: Studio, bench: Path, tmp_path: Path) -> None:
    where = ("--ledger", tmp_path / "ledger.db", "--state", studio.folder)
    order = ("push", bench, "--campaign", "grows", "--interface", "reality")
    order = (*order, "--annotators", PEOPLE, "--overlap", "1", *where)
    (bench / "real" / "broken.mp4").unlink()
    assert run(*order)["batch"] == 1
    (bench / "real" / "new.mp4").write_bytes(synthesise(ClipRecipe(n_frames=8, seed=9)))
    grown = run(*order)
    assert (grown["batch"], grown["new_tasks"], grown["pushed"]["sent"]) == (2, 1, 1)


def test_people_decide_the_queue_of_curate(studio: Studio, bench: Path, tmp_path: Path) -> None:
    ledger, decisions = tmp_path / "ledger.db", tmp_path / "decisions.jsonl"
    where = ("--ledger", ledger, "--state", studio.folder)
    lines = [
        {"piece": f"piece{n}", "name": f"n{n}", "location": str(clip), "label": "real"}
        | {"start_s": "1/24", "length_s": "1/6", "proposed": "keep", "decision": ""}
        for n, clip in enumerate(sorted((bench / "real").glob("clip*.mp4")))
    ]
    queue = tmp_path / "queue.jsonl"
    queue.write_text("".join(json.dumps(line) + "\n" for line in lines))
    order = ("push", queue, "--campaign", "queue", "--interface", "screening", "--overlap", "1")
    assert run(*order, "--annotators", "ada=ada@example.org", *where)["tasks"] == 2
    with open_ledger(str(ledger)) as opened:
        tasks = {task.id: task for task in opened.tasks("queue")}
        assert {task.copies[0].n_frames for task in tasks.values()} == {4}
        (room,) = read_stored_projects(opened, "queue").values()
        with sign_in(studio, "ada@example.org") as own:
            for shown in iter_studio_project_tasks(own, room.project, fields=("data",)):
                task = tasks[shown["data"][TASK_KEY]]
                value = ScreeningAnswer(keep=task.names == ("piece0",))
                post(own, int(shown["id"]), build_label_studio_results(value, task, swapped=False))
    told = run("pull", "queue", "--decisions", decisions, *where)
    assert told["decisions"] == {"keep": 1, "remove": 1}
    rows = [json.loads(line) for line in decisions.read_text().splitlines()]
    assert {row["piece"]: row["decision"] for row in rows} == {"piece0": "keep", "piece1": "remove"}


@pytest.mark.slow
def test_up_refuses_a_database_that_another_state_was_begun_with(
    studio: Studio, postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tables of the session's server lie beside this ledger.
    name = studio.plan.database.rpartition("/")[2].removesuffix("_studio")
    postgres.drop_database(name)
    monkeypatch.setenv("UNREEL_LEDGER", postgres.create_database(name))
    words = ["up", "--program", studio_program(), "--port", free_port()]
    command = [*UNREEL, *map(str, words), "--state", str(tmp_path / "state"), "--json"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "does not know the token" in refused.stderr
    assert not (tmp_path / "state" / "studio.json").exists()
