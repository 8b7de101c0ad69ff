"""Answers in the styles of current models, deliberately hard, against what a person reads in them.

`answers.jsonl` beside this file is ours; the set of the shared folder has the same form.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from protocols.hard_answers import read_all

OURS = Path(__file__).with_name("answers.jsonl")
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "reading.py"


@pytest.fixture(params=["given", "ours"])
def answers(request: pytest.FixtureRequest) -> Path:
    if request.param == "ours":
        return OURS
    shared: Path = request.getfixturevalue("shared")
    return shared / "answers" / "answers.jsonl"


def test_strict_reads_nothing_wrongly_and_all_that_follows_the_form(answers: Path) -> None:
    parts = read_all(answers, "strict")
    assert [part for part in parts if part.is_wrong] == []
    assert [part for part in parts if part.is_needless] == []


def test_lenient_is_wrong_in_one_of_a_hundred_and_fails_needlessly_in_one_of_twenty(
    answers: Path,
) -> None:
    parts = read_all(answers, "lenient")
    wrong = [part for part in parts if part.is_wrong]
    needless = [part for part in parts if part.is_needless]
    assert len(wrong) <= 0.01 * len(parts), wrong
    assert len(needless) < 0.05 * sum(part.true is not None for part in parts), needless


def test_the_table_counts_what_was_read_wrongly_and_lists_it(tmp_path: Path) -> None:
    lines = [
        '{"protocol": "reality", "text": "<answer>1</answer>", "follows_the_form": true, "label": "generated"}',
        '{"protocol": "reality", "text": "who knows", "follows_the_form": false, "label": "real"}',
    ]
    answers = tmp_path / "small.jsonl"
    answers.write_text("\n".join(lines), encoding="utf-8")
    shown = subprocess.run(
        [sys.executable, SCRIPT, answers, "--show"], check=True, capture_output=True, text=True
    ).stdout
    assert f"| {answers} | lenient | all | 2 | 1 | 1 of 2 |" in shown
    assert "wrong: lenient reality label: read real, true generated: <answer>1</answer>" in shown
    assert "needless: lenient reality label: true real: who knows" in shown
