"""`unreel score`: pairs and votes from files, and figures as CSV and LaTeX."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

REAL_FIRST = ("real/s{} | Wan/T2V/s{}", "1")
REAL_SECOND = ("Wan/T2V/s{} | real/s{}", "2")


@pytest.fixture
def twins(tmp_path: Path) -> Path:
    """A table of six scenes, each filmed and made by Wan; the clips themselves are nowhere."""
    path = tmp_path / "twins.csv"
    lines = ["name,file,label,creator,setting,group"]
    for n in range(6):
        lines += [f"real/s{n},real/s{n}.mp4,real,,,s{n}"]
        lines += [f"Wan/T2V/s{n},Wan/T2V/s{n}.mp4,generated,Wan,T2V,s{n}"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write(path: Path, rows: Iterable[Mapping[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def answers(tmp_path: Path) -> Path:
    rows = [
        {"name": f"{folder}/s{n}", "text": f"<answer>{said}</answer>"}
        for n in range(6)
        for folder, said in (("real", 1), ("Wan/T2V", n % 2))
    ]
    return write(tmp_path / "answers.jsonl", rows)


def votes(tmp_path: Path) -> Path:
    rows = [
        {"name": f"{folder}/s{n}", "voter": voter, "label": label}
        for voter in ("ann", "=ben", "eva")
        for n in range(6)
        for folder, label in (("real", "real"), ("Wan/T2V", "fake" if voter > "b" else "real"))
    ]
    return write(tmp_path / "votes.jsonl", rows)


def test_pairs_are_scored_by_order_with_the_position_bias(run, twins: Path, tmp_path: Path) -> None:
    rows = [
        {"name": name.format(n, n), "text": "1"}
        for n in range(6)
        for name, _ in (REAL_FIRST, REAL_SECOND)
    ]
    path = write(tmp_path / "pairs.jsonl", rows)
    done = run("score", path, "--benchmark", twins, "--protocol", "preference", "--json")
    assert done.returncode == 0, done.stderr
    figures = {m["name"]: m["value"] for m in json.loads(done.stdout)["scorecard"]["metrics"]}
    assert figures["accuracy"]["value"] == 50
    assert figures["position-bias"]["value"] == 50


def test_votes_are_scored_for_each_person_all_together_and_by_majority(
    run, twins: Path, tmp_path: Path
) -> None:
    path = votes(tmp_path)
    done = run("score", path, "--benchmark", twins, "--protocol", "reality", "--json")
    assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)["scores"]
    caught = [
        {m["name"]: m["value"] for m in card["metrics"]}["caught: Wan"]["value"]
        for card in (scores["votes"], scores["majority"], *scores["voters"].values())
    ]
    assert caught == pytest.approx([100 / 3, 0, 0, 0, 100])
    assert scores["agreement"]["n"] == 12
    shown = run("score", path, "--benchmark", twins, "--protocol", "reality")
    assert "36 votes of 3 people on 12 clips" in shown.stderr
    assert "majority of each clip" in shown.stdout
    refused = run("score", path, "--benchmark", twins, "--protocol", "realism")
    assert refused.returncode == 2
    assert "Use --protocol reality" in refused.stderr


def test_figures_come_as_one_csv_that_no_spreadsheet_calculates(
    run, twins: Path, tmp_path: Path
) -> None:
    done = run(
        "score", answers(tmp_path), "--benchmark", twins, "--protocol", "reality", "--format", "csv"
    )
    lines = {
        (line["metric"], line["of"]): line for line in csv.DictReader(io.StringIO(done.stdout))
    }
    assert lines["caught", "Wan/T2V"]["value"] == "50.00"
    assert float(lines["caught", "Wan/T2V"]["low"]) < 50
    assert lines["caught", "Wan/T2V"]["n"] == lines["caught", "Wan/T2V"]["parsed"] == "6"
    people = run(
        "score", votes(tmp_path), "--benchmark", twins, "--protocol", "reality", "--format", "csv"
    )
    who = {line["who"] for line in csv.DictReader(io.StringIO(people.stdout))}
    assert who == {"all votes", "majority", "voter ann", "voter =ben", "voter eva"}
