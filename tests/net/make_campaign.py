"""Make four campaigns on a real Label Studio, and keep its contents for a second push and pull."""

import csv
import hashlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

from net.commands import keep, read_json
from net.studio_snapshot import StudioSnapshot, serve_snapshot, take_snapshot

PEOPLE = ("ada", "ben", "cleo")
BENCH = "few.csv"
N_CLIPS = 4
WHERE = ("--ledger", "ledger.db")
STATE = ("--state", "state", *WHERE)
PUSHES = {
    "traces": ("--interface", "trace"),
    "pairs": ("--interface", "preference", "--pairs", "pairs.csv"),
    "votes": ("--interface", "reality", "--gold", 1),
    "scores": ("--interface", "realism"),
}
READS = {
    "traces": (("status",), ("consensus",)),
    "pairs": (("status",), ("consensus",), ("rank",)),
    "votes": (("status",), ("consensus",), ("quality",)),
    "scores": (("status",), ("consensus",)),
}
"""Commands that read each campaign from the ledger."""
_TOKEN = "0" * 40


def push_words(campaign: str) -> list[object]:
    """Return the words of the push of that campaign."""
    people = ",".join(f"{name}={name}@example.org" for name in PEOPLE)
    words = ["annotate", "push", BENCH, "--campaign", campaign, "--annotators", people]
    return [*words, *PUSHES[campaign], "--trusted", *STATE]


def set_address(address: str) -> None:
    """Let commands find Label Studio at `address`, and the benchmark in the present folder."""
    with sqlite3.connect("ledger.db") as ledger:
        ledger.execute("UPDATE ledger_campaigns SET benchmark = ?", (str(Path(BENCH).absolute()),))
    Path("state/studio.json").write_text(json.dumps({"address": address}), encoding="utf-8")


def make_campaign(program: Path) -> None:
    """Push, answer and pull four campaigns; keep the ledger, the copies and the contents."""
    with Path("clips.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))[: N_CLIPS + 1]
    with Path(BENCH).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    read_json("annotate", "pairs", BENCH, "--plan", "strict", "--clips", "all")
    up = [sys.executable, "-c", "from unreel.cli.main import main; main()", "annotate", "up"]
    up += ["--program", str(program), "--port", "18431", *STATE, "--json"]
    server = subprocess.Popen(up, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = json.loads("".join(iter(server.stdout.readline, "}\n")) + "}")["address"]
        for campaign in PUSHES:
            read_json(*push_words(campaign))
            answer_all(address, campaign)
            read_json("annotate", "pull", campaign, *STATE)
        token = json.loads(Path("state/secrets.json").read_text(encoding="utf-8"))["token"]
        snapshot = take_snapshot(lambda path: request(build_opener(), address + path, token))
    finally:
        os.kill(server.pid, signal.SIGTERM)
        server.wait(60)
    kept = {"pages": snapshot.pages, "tasks": snapshot.tasks, "storages": snapshot.storages}
    Path("snapshot.json").write_text(json.dumps(kept, indent=1), encoding="utf-8")
    keep_documents(snapshot)
    forget_secrets()


def keep_documents(snapshot: StudioSnapshot) -> None:
    """Push and pull once more, read the campaigns, and keep the printed documents."""
    with serve_snapshot(snapshot):
        set_address(snapshot.address)
        for campaign in PUSHES:
            keep(f"{campaign}-push", *push_words(campaign))
            keep(f"{campaign}-pull", "annotate", "pull", campaign, *STATE)
    assert snapshot.writes == [], snapshot.writes
    for campaign, commands in READS.items():
        for (command,) in commands:
            keep(f"{campaign}-{command}", "annotate", command, campaign, *WHERE)


def forget_secrets() -> None:
    """Leave of Label Studio's folder only what commands read, without a password."""
    for path in Path("state").iterdir():
        if path.name not in {"studio.json", "secrets.json", "names.json", "media"}:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    secrets = {"password": "", "token": _TOKEN}
    Path("state/secrets.json").write_text(json.dumps(secrets), encoding="utf-8")


def answer_all(address: str, campaign: str) -> None:
    """Let every annotator answer every task of their project, as themselves."""
    for link in read_json("annotate", "links", campaign, "--passwords", *STATE):
        person, token = sign_in(address, link["login"], link["password"])
        project = re.search(r"projects/(\d+)", link["url"])
        assert project is not None
        query = urlencode({"project": project[1], "page_size": 100, "fields": "all"})
        for task in request(person, f"{address}/api/tasks/?{query}", token)["tasks"]:
            result = choose_result(campaign, link["annotator"], task["data"]["unreel_task"])
            body = {"result": result, "lead_time": 12.5}
            request(person, f"{address}/api/tasks/{task['id']}/annotations/", token, body)


def sign_in(address: str, login: str, password: str) -> tuple[OpenerDirector, str]:
    """Return a session of that annotator and the token of their account."""
    cookies = CookieJar()
    person = build_opener(HTTPCookieProcessor(cookies))
    person.open(f"{address}/user/login/").read()
    check = next(each.value for each in cookies if each.name == "csrftoken")
    form = {"email": login, "password": password, "csrfmiddlewaretoken": check}
    person.open(f"{address}/user/login/", urlencode(form).encode()).read()
    return person, json.load(person.open(f"{address}/api/current-user/token"))["token"]


def request(person: OpenerDirector, url: str, token: str, body: object = None) -> Any:
    """Return the JSON reply to a request as that annotator."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Token {token}", "content-type": "application/json"}
    return json.load(person.open(Request(url, data, headers)))


def choose_result(campaign: str, annotator: str, task: str) -> list[dict[str, Any]]:
    """Return an answer in Label Studio's format; cleo differs from the others at times."""
    chance = hashlib.sha256(task.encode()).digest()[0]
    differs = annotator == "cleo" and chance % 3 == 0
    is_first = (chance % 2 == 0) is not differs
    if campaign == "votes":
        return [write_choice("reality", "video", "real" if is_first else "generated")]
    if campaign == "pairs":
        return [write_choice("better", "left", "left" if is_first else "right")]
    if campaign == "scores":
        texts = [
            write_text("problem", "The hand bends."),
            write_text("adherence", "It is noticeable."),
        ]
        return [write_choice("score", "video", str(3 + is_first)), *texts]
    verdict = write_choice("verdict", "video", "traces" if is_first else "looks-real")
    return [verdict, *(write_trace(PEOPLE.index(annotator)) if is_first else [])]


def write_choice(name: str, about: str, word: str) -> dict[str, Any]:
    """Return one choice of a screen."""
    own = {"id": name, "from_name": name, "to_name": about, "type": "choices", "origin": "manual"}
    return own | {"value": {"choices": [word]}}


def write_text(name: str, text: str) -> dict[str, Any]:
    """Return one text of a screen."""
    own = {"id": name, "from_name": name, "to_name": "video", "type": "textarea"}
    return own | {"origin": "manual", "value": {"text": [text]}}


def write_trace(shift: int) -> list[dict[str, Any]]:
    """Return one box over time with its category and explanation."""
    box = {"rotation": 0, "x": 20.0 + shift, "y": 25.0, "width": 25.0, "height": 50.0}
    ends = [{"frame": 3, "enabled": True}, {"frame": 9, "enabled": False}]
    place = {
        "framesCount": 14,
        "duration": 14 / 12,
        "sequence": [end | box | {"time": end["frame"] / 12} for end in ends],
    }
    values = {
        "box": ("videorectangle", {"labels": ["trace"]}),
        "category": ("choices", {"choices": ["sudden-blurring"]}),
        "explanation": ("textarea", {"text": [f"It blurs, seen {shift}."]}),
    }
    own = {"id": "trace-1", "to_name": "video", "origin": "manual"}
    return [
        own | {"from_name": name, "type": kind, "value": place | value}
        for name, (kind, value) in values.items()
    ]
