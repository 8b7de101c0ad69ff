"""`unreel calibrate`: false alarms on real footage, and the passport that a review shows."""

import json
from pathlib import Path

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from synthesise import ClipRecipe, synthesise
from unreel.core.errors import UnreadableSourceError
from unreel.evaluation.passport import read_passport

REALITY = ("--protocol", "reality", "--trusted")


@pytest.fixture(scope="module")
def footage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three clips of two phones, one of them twice."""
    folder = tmp_path_factory.mktemp("footage")
    for name, seed in (("old/a", 1), ("old/b", 2), ("new/c", 3), ("new/copy", 3)):
        file = folder / f"{name}.mp4"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(synthesise(ClipRecipe(n_frames=12, seed=seed)))
    return folder


def test_false_alarms_are_counted_by_source_with_exact_intervals(run, footage: Path) -> None:
    models = ("--model", "always-generated", "--model", "always-real")
    done = run("calibrate", footage, *models, *REALITY, "--out", "p.json")
    assert done.returncode == 0, done.stderr
    assert "3 different clips" in done.stderr
    assert "1 files repeat" in done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert ["always-generated", "reality@2", "all", "3", "3", "100.0 %", "29.2 to 100.0"] in rows
    assert ["always-real", "reality@2", "source old", "2", "0", "0.0 %", "0.0 to 84.2"] in rows


def test_a_second_call_asks_only_about_new_clips(run, footage: Path, tmp_path: Path) -> None:
    folder = tmp_path / "growing"
    folder.mkdir()
    (folder / "a.mp4").write_bytes((footage / "old/a.mp4").read_bytes())
    asked = ("calibrate", folder, "--model", "always-real", *REALITY, "--json")
    assert json.loads(run(*asked).stdout)["n_clips"] == 1
    (folder / "b.mp4").write_bytes((footage / "old/b.mp4").read_bytes())
    grown = run(*asked)
    assert json.loads(grown.stdout)["n_clips"] == 2
    stored = run("score", "passport-runs/always-real-reality", "--json", "--allow-outside")
    (condition,) = json.loads(stored.stdout)["scores"]
    assert condition["scorecard"]["n_questions"] == 2


def test_a_review_shows_what_the_passport_says(run, footage: Path, tmp_path: Path) -> None:
    models = ("--model", "always-generated", "--model", "always-real", *REALITY)
    run("calibrate", footage, *models)
    inside, outside = footage / "old/a.mp4", tmp_path / "small.mp4"
    outside.write_bytes(synthesise(ClipRecipe(n_frames=4, seed=9)))
    ways = (*models, "--model", "coin", "--passport", "passport.json", "--out", "e")
    done = run("review", inside, *ways, "--json")
    (row,) = json.loads(done.stdout)["clips"]
    alarm, calm, unknown = (opinion["footage"] for opinion in row["opinions"])
    assert (alarm["n"], alarm["n_alarms"]) == (3, 3)
    assert "fewer than 1 of 10 such alarms are right" in alarm["text"]
    assert "too few for a statement about this kind" in alarm["text"]
    assert "such alarms" not in calm["text"]
    assert unknown["kind"] == "unknown"
    page = (tmp_path / "e" / "evidence.html").read_text(encoding="utf-8")
    assert "Your own footage" in page
    told = run("review", outside, *ways).stdout
    assert "Not judged: the clip is unlike your footage" in " ".join(told.split())


def test_a_generated_clip_in_the_archive_is_refused(run, footage: Path, tmp_path: Path) -> None:
    table = tmp_path / "clips.csv"
    (tmp_path / "a.mp4").write_bytes((footage / "old/a.mp4").read_bytes())
    table.write_text("file,label,generator\na.mp4,generated,Sora\n", encoding="utf-8")
    done = run("calibrate", table, "--model", "coin", *REALITY)
    assert done.returncode == 2
    assert "a.mp4 is labelled as generated" in done.stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run("calibrate", empty, "--model", "coin").returncode == 2


def test_a_damaged_passport_is_refused(run, footage: Path, tmp_path: Path) -> None:
    run("calibrate", footage, "--model", "always-real", *REALITY)
    good = json.loads((tmp_path / "passport.json").read_text(encoding="utf-8"))
    cell = good["reviewers"][0]["cells"][0]
    damaged = [
        [],
        good | {"format": "unreel passport 9"},
        good | {"n_clips": -1},
        good | {"shorter_sides": [240]},
        good | {"reviewers": [{}]},
        good | {"reviewers": [good["reviewers"][0] | {"parser": "kind"}]},
        good | {"reviewers": [good["reviewers"][0] | {"cells": [cell | {"n": "many"}]}]},
        {name: value for name, value in good.items() if name != "codecs"},
    ]
    file = tmp_path / "damaged.json"
    for document in damaged:
        file.write_text(json.dumps(document), encoding="utf-8")
        with pytest.raises(UnreadableSourceError):
            read_passport(file)
