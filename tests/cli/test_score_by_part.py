"""`unreel score` on a person's own table: its columns become figures of parts."""

import csv
import json
from pathlib import Path

import pytest


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    path = tmp_path / "clips.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["file_name", "label", "creator", "difficulty"])
        for i in range(16):
            label, creator = ("real", "") if i % 2 else ("fake", "Veo")
            table.writerow([f"c{i}.mp4", label, creator, "easy" if i < 8 else "hard"])
    return path


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.jsonl"
    said = {i: i % 2 if i < 8 else 1 for i in range(16)}  # right where it is easy, else always real
    rows = ({"name": f"c{i}.mp4", "text": f"<answer>{d}</answer>"} for i, d in said.items())
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_a_column_of_difficulties_becomes_figures(run, benchmark: Path, answers: Path) -> None:
    asked = ("score", answers, "--benchmark", benchmark, "--protocol", "reality")
    metrics = json.loads(run(*asked, "--json").stdout)["scorecard"]["metrics"]
    found = {metric["name"]: metric["value"] for metric in metrics}
    assert found["accuracy"]["value"] == 75
    assert found["accuracy: difficulty=easy"]["value"] == 100
    assert found["accuracy: difficulty=hard"]["value"] == 50
    hard = found["fake-accuracy: difficulty=hard"]
    assert (hard["value"], hard["low"], hard["n"]) == (0, 0, 4)
    assert not any(name.startswith("caught: difficulty") for name in found)


def test_a_confidence_is_read_where_its_prompt_was_asked(
    run, tmp_path: Path, benchmark: Path
) -> None:
    path = tmp_path / "sure.jsonl"
    texts = (f"<answer>{i % 2}</answer><confidence>{90 - i}</confidence>" for i in range(16))
    rows = ({"name": f"c{i}.mp4", "text": text} for i, text in enumerate(texts))
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    asked = ("score", path, "--benchmark", benchmark, "--protocol", "reality")
    done = run(*asked, "--prompt", "confidence", "--json")
    metrics = json.loads(done.stdout)["scorecard"]["metrics"]
    found = {metric["name"]: metric["value"] for metric in metrics}
    assert found["auc"]["value"] == 1
    assert "need 100 real clips, here are 8" in found["tpr-at-fpr-1"]["why"]
