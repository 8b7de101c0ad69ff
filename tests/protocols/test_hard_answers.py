"""Answers in the styles of current models, deliberately hard, against what a person reads in them.

`answers.jsonl` beside this file is ours; the set of the shared folder has the same form.
"""

from pathlib import Path

import pytest

from protocols.hard_answers import read_all

OURS = Path(__file__).with_name("answers.jsonl")


@pytest.fixture(params=["given", "ours"])
def answers(request: pytest.FixtureRequest) -> Path:
    if request.param == "ours":
        return OURS
    shared: Path = request.getfixturevalue("shared")
    return shared / "answers" / "answers.jsonl"


def test_lenient_leaves_doubtful_sentences_unread() -> None:
    """Negations, conditions, reports and percentages around a label: 44 answers, at most 2 % read wrongly."""
    parts = read_all(OURS.with_name("doubtful_answers.jsonl"), "lenient")
    assert len(parts) == 44
    assert [part for part in parts if part.is_wrong] == []


def test_strict_reads_nothing_wrongly_and_all_that_follows_the_form(answers: Path) -> None:
    parts = read_all(answers, "strict")
    assert [part for part in parts if part.is_wrong] == []
    assert [part for part in parts if part.is_needless] == []


def test_lenient_is_wrong_in_one_of_a_hundred_and_fails_needlessly_in_one_of_eight(
    answers: Path,
) -> None:
    parts = read_all(answers, "lenient")
    wrong = [part for part in parts if part.is_wrong]
    needless = [part for part in parts if part.is_needless]
    assert len(wrong) <= 0.01 * len(parts), wrong
    assert len(needless) < 0.12 * sum(part.true is not None for part in parts), needless
