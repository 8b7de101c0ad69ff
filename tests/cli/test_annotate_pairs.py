"""`unreel annotate pairs` and `rank` as people type them, over a ledger of their own."""

import json
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")

from unreel.annotation.browser_copies import ClipCopyRequest
from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationTask,
    Annotator,
    AnnotatorClipCopy,
    Campaign,
)
from unreel.annotation.judgements import AnnotationRecord, PreferenceAnswer
from unreel.annotation.ledger.connection import open_ledger
from unreel.annotation.pairs import read_pair_file
from unreel.annotation.tasks import TaskClip, build_annotation_tasks, select_clips_of_pairs
from unreel.core.content_ids import compute_placeholder_clip_id
from unreel.core.errors import InvalidSettingError
from unreel.core.verdict import Position

NAMES = [f"c{number:02d}" for number in range(40)]


def copy(name: str) -> AnnotatorClipCopy:
    rate = Fraction(25)
    return AnnotatorClipCopy(
        clip=compute_placeholder_clip_id(name),
        location=name,
        rate=rate,
        n_frames=9,
        width=9,
        height=9,
    )


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    folder = tmp_path / "bench"
    folder.mkdir()
    rows = [
        {"file_name": f"{name}.mp4", "name": name, "label": "generated", "score": 1 + at % 5}
        for at, name in enumerate(NAMES)
    ]
    for row in rows:
        (folder / str(row["file_name"])).touch()
    (folder / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


@pytest.fixture
def ledger(tmp_path: Path, bench: Path) -> Path:
    """Two people compared six clips: a lower number looks more real, to bob where they lie far apart."""
    place = tmp_path / "ledger.db"
    tasks = [
        AnnotationTask(names=pair, copies=tuple(map(copy, pair)))
        for pair in combinations(NAMES[:6], 2)
    ]
    with open_ledger(str(place)) as opened:
        opened.enlist([Annotator("ann", "a@example.org"), Annotator("bob", "b@example.org")])
        opened.open_campaign(
            Campaign(
                name="liked",
                interface=AnnotationInterface.PREFERENCE,
                benchmark=str(bench),
                guidelines="Which looks more real?",
                interface_version="v1",
            )
        )
        opened.add_tasks("liked", tasks)
        opened.append(record(task, who) for task in tasks for who in ("ann", "bob"))
    return place


def record(task: AnnotationTask, who: str) -> AnnotationRecord:
    one, other = (int(name[1:]) for name in task.names)
    upset = who == "bob" and other - one <= 2
    return AnnotationRecord(
        campaign="liked",
        annotator=who,
        task=task.id,
        origin=f"studio:{who}:{task.id}",
        guidelines_version="g",
        interface_version="v1",
        submitted_us=1,
        lead_us=None,
        raw=json.dumps([who, task.id]),
        outcome=PreferenceAnswer(better=Position.SECOND if upset else Position.FIRST),
    )


def typed(run: Any, *words: object, status: int = 0) -> Any:
    done = run("annotate", *words)
    assert done.returncode == status, done.stderr
    return done


def test_the_strict_plan_writes_345_pairs_for_push(run: Any, bench: Path, tmp_path: Path) -> None:
    done = typed(run, "pairs", bench, "--plan", "strict", "--clips", "all", "--json")
    assert json.loads(done.stdout)["n_pairs"] == len(read_pair_file(tmp_path / "pairs.csv")) == 640
    done = typed(run, "pairs", bench, "--plan", "strict", status=2)
    assert "--clips all" in done.stderr


def test_the_telling_plan_asks_of_clips_that_nobody_compared(
    run: Any, bench: Path, ledger: Path, tmp_path: Path
) -> None:
    asked = ("--plan", "gain", "--n", "17", "--campaign", "liked", "--ledger", ledger)
    typed(run, "pairs", bench, *asked, "--out", "next.csv")
    chosen = read_pair_file(tmp_path / "next.csv")
    assert len(chosen) == 17
    assert {name for pair in chosen for name in pair} == set(NAMES[6:])


def test_clips_are_ranked_with_intervals(run: Any, ledger: Path) -> None:
    told = json.loads(typed(run, "rank", "liked", "--ledger", ledger, "--json").stdout)
    assert [clip["name"] for clip in told["clips"]][::5] == ["c00", "c05"]
    assert told["n_judgements"] == 30
    first = told["clips"][0]["believed"]
    assert first["low"] < first["value"] < first["high"]
    table = typed(run, "rank", "liked", "--ledger", ledger).stdout.splitlines()
    assert table[0].split("\t") == ["place", "clip", "strength", "believed", "share"]
    assert len(table) == 7
    assert "liked" in typed(run, "rank", "like", "--ledger", ledger, status=2).stderr


def test_a_campaign_asks_about_the_chosen_pairs_alone() -> None:
    subjects = [TaskClip(wanted=ClipCopyRequest(name, Path(name))) for name in NAMES[:4]]
    copies = {name: copy(name) for name in NAMES[:3]}
    pairs = [("c00", "c02"), ("c01", "c03")]
    tasks = build_annotation_tasks(
        subjects, copies, interface=AnnotationInterface.PREFERENCE, prefill={}, pairs=tuple(pairs)
    )
    assert [task.names for task in tasks] == [("c00", "c02")]
    assert select_clips_of_pairs(subjects, [("c00", "c02")]) == [subjects[0], subjects[2]]
    with pytest.raises(InvalidSettingError, match="--pairs"):
        select_clips_of_pairs(subjects, [("c00", "c99")])
