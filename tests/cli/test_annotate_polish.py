"""`unreel annotate polish` and `confirm` as people type them, against a model on loopback."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")

from chat import Reply, refuses, says, serve_chat
from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationRecord,
    AnnotationTask,
    Annotator,
    AnnotatorClipCopy,
    Campaign,
    RatingAnswer,
)
from unreel.annotation.ledger.connection import open_ledger
from unreel.core.content_ids import compute_bytes_clip_id
from unreel.core.judgement import Rating

PEOPLE = ("ann", "bob", "cho")
POLISHED = (
    "<think>hm</think>- Problem Description: The hand of {clip} melts.\n"
    "- Standard Adherence: It is a noticeable error.\n- Conclusion: Normal"
)


@dataclass
class Model:
    refused: str = "nothing"
    asked: list[str] = field(default_factory=list)
    port: int = 0

    @property
    def name(self) -> str:
        return f"compatible/tiny@http://127.0.0.1:{self.port}/v1"


@pytest.fixture
def model() -> Iterator[Model]:
    state = Model()

    def reply(body: bytes, _: Message) -> Reply:
        asked = body.decode()
        state.asked.append(asked)
        clip = "one" if "hand of one" in asked else "two"
        return refuses(400, "no") if clip == state.refused else says(POLISHED.format(clip=clip))

    with serve_chat(reply) as state.port:
        yield state


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Three people score two clips 3, 3 and 4."""
    place = tmp_path / "ledger.db"
    with open_ledger(str(place)) as opened:
        opened.enlist(Annotator(who, f"{who}@example.org") for who in PEOPLE)
        opened.open_campaign(
            Campaign(
                name="scored",
                interface=AnnotationInterface.REALISM,
                benchmark="bench",
                guidelines="Score it.",
                interface_version="v1",
            )
        )
        tasks = [_task("one"), _task("two")]
        opened.add_tasks("scored", tasks)
        opened.append(_record(task, who) for task in tasks for who in PEOPLE)
    return place


def _task(name: str) -> AnnotationTask:
    rate = Fraction(25)
    copy = AnnotatorClipCopy(
        clip=compute_bytes_clip_id(name.encode()),
        location=name,
        rate=rate,
        n_frames=9,
        width=9,
        height=9,
    )
    return AnnotationTask(names=(name,), copies=(copy,))


def _record(task: AnnotationTask, who: str) -> AnnotationRecord:
    words = f"{who}: the hand of {task.names[0]} melts"
    adherence = "a noticeable error"
    score = 4 if who == "cho" else 3
    return AnnotationRecord(
        campaign="scored",
        annotator=who,
        task=task.id,
        origin=f"studio:{who}:{task.id}",
        guidelines_version="g",
        interface_version="v1",
        submitted_us=1,
        lead_us=None,
        raw=json.dumps([who, task.id]),
        outcome=RatingAnswer(rating=Rating(score=score, problem=words, adherence=adherence)),
    )


def polish(run: Any, ledger: Path, *words: object, status: int = 0) -> dict[str, Any]:
    done = run("annotate", "polish", "scored", "--ledger", ledger, "--json", *words)
    assert done.returncode == status, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_a_failed_question_is_told_and_asked_again(run: Any, ledger: Path, model: Model) -> None:
    model.refused = "two"
    told = polish(run, ledger, "--model", model.name, status=1)
    assert [each["clip"] for each in told["texts"]] == ["one"]
    (failed,) = told["failed"]
    assert failed["failure"]["reason"] == "request-rejected"
    model.refused = "nothing"
    assert len(polish(run, ledger, "--model", model.name)["texts"]) == 2
    assert sum("hand of one" in asked for asked in model.asked) == 1


def test_a_confirmation_does_not_carry_over_to_a_new_text(
    run: Any, ledger: Path, model: Model
) -> None:
    polish(run, ledger, "--model", model.name)
    run("annotate", "confirm", "scored", "one", "--by", "dee", "--ledger", ledger)
    told = polish(run, ledger, "--model", model.name, "--again")
    assert told["texts"][0]["polished"]["standing"] == "waiting"
