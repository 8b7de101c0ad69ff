"""VideoRealBench's tables, and what three annotators agree on."""

from collections.abc import Callable
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest

from benchmarks.census import take_census
from unreel.benchmarks.clip_tables import read_realism_table
from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.table_entries import merge_ratings
from unreel.core.clip import Generated
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.judgement import ErrorFamily, Label, Rating

Write = Callable[[str, list[dict[str, Any]]], Path]


def ratings(scores: tuple[int, ...]) -> list[Rating]:
    return [Rating(score=score, problem=f"by the {score}") for score in scores]


# The ten triples of distinct scores: agreed score, and whose reasons are taken.
TRIPLES = {
    (1, 2, 3): (2, 2),
    (1, 2, 4): (2, 2),
    (1, 2, 5): (3, 2),
    (1, 3, 4): (3, 3),
    (1, 3, 5): (3, 3),
    (1, 4, 5): (3, 4),
    (2, 3, 4): (3, 3),
    (2, 3, 5): (3, 3),
    (2, 4, 5): (4, 4),
    (3, 4, 5): (4, 4),
}


def test_the_ten_triples_are_all_there() -> None:
    assert set(TRIPLES) == set(combinations(range(1, 6), 3))


@pytest.mark.parametrize(("scores", "agreed"), TRIPLES.items())
def test_three_different_scores_give_the_rounded_mean_and_the_closest_reasons(
    scores: tuple[int, int, int], agreed: tuple[int, int]
) -> None:
    score, whose = agreed
    for order in permutations(scores):
        assert merge_ratings(ratings(order)) == Rating(score=score, problem=f"by the {whose}")


@pytest.mark.parametrize(("scores", "agreed"), [((5, 1, 1), 1), ((2, 5, 2), 2), ((4, 4, 4), 4)])
def test_two_equal_scores_win(scores: tuple[int, int, int], agreed: int) -> None:
    assert merge_ratings(ratings(scores)) == Rating(score=agreed, problem=f"by the {agreed}")


def test_the_reasons_are_those_of_the_first_of_the_majority() -> None:
    first, second = Rating(score=2, problem="a"), Rating(score=2, problem="b")
    assert merge_ratings([Rating(score=5), first, second]) == first


def test_two_annotators_agree_on_nothing() -> None:
    with pytest.raises(InvalidValueError, match="3 ratings, got 2"):
        merge_ratings(ratings((1, 2)))


@pytest.mark.parametrize("name", ["vrb.csv", "vrb.jsonl", "vrb.parquet"])
def test_the_whole_benchmark_is_read_from_any_table(
    write_rows: Write, realism_rows: list[dict[str, Any]], name: str
) -> None:
    rows = list(read_realism_table(write_rows(name, realism_rows)))
    census = take_census(rows)
    assert census.entries == {("train", Label.GENERATED): 2309, ("test", Label.GENERATED): 988}
    assert census.n_rejected == 0
    second = rows[1]
    assert isinstance(second, Entry)
    assert second.rating == Rating(score=3, problem="problem by 2", adherence="adherence by 2")
    assert [rating.score for rating in second.ratings] == [1, 2, 5]
    assert second.origin == Generated("Wan")


def test_an_agreed_score_is_taken_as_it_is(write_rows: Write) -> None:
    table = write_rows("vrb.csv", [{"video": "a.mp4", "score": 4, "problem_description": "hand"}])
    (entry,) = read_realism_table(table)
    assert isinstance(entry, Entry)
    assert entry.rating == Rating(score=4, problem="hand")
    assert entry.ratings == ()


def test_columns_of_other_names_are_mapped(write_rows: Write) -> None:
    table = write_rows("vrb.csv", [{"clip": "a.mp4", "physics": 2, "why": "it floats"}])
    mapping = {"location": "clip", "score": "physics", "problem": "why"}
    (entry,) = read_realism_table(table, mapping)
    assert isinstance(entry, Entry)
    assert entry.rating == Rating(score=2, problem="it floats")


@pytest.mark.parametrize("score", [0, 6, 2.5, "good", "", None])
def test_a_score_off_the_scale_is_rejected(write_rows: Write, score: object) -> None:
    rows = [{"video": "a.mp4", "score": score}, {"video": "b.mp4", "score": 3}]
    rejected, entry = read_realism_table(write_rows("vrb.jsonl", rows))
    assert isinstance(rejected, Rejected)
    assert isinstance(entry, Entry)


def test_a_table_without_scores_cannot_be_read(write_rows: Write) -> None:
    with pytest.raises(UnreadableSourceError, match="score=COLUMN"):
        list(read_realism_table(write_rows("vrb.csv", [{"video": "a.mp4", "score_1": 1}])))


def test_a_line_that_is_no_json_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "vrb.jsonl").write_text('{"video": "a", "score": 1}\n{\n', encoding="utf-8")
    entry, rejected = read_realism_table(tmp_path / "vrb.jsonl")
    assert isinstance(entry, Entry)
    assert rejected.name == "row 2"


@pytest.mark.parametrize("spelt", ["human states", "Human_States", "human-states"])
def test_a_family_of_errors_is_part_of_the_agreed_rating(write_rows: Write, spelt: str) -> None:
    agreed = {"video": "a.mp4", "score": 2, "error_family": spelt}
    by_three = {"video": "b.mp4", "error_family": spelt} | {f"score_{i}": 2 for i in (1, 2, 3)}
    for row in (agreed, by_three):
        (entry,) = read_realism_table(write_rows("clips.jsonl", [row]))
        assert isinstance(entry, Entry)
        assert entry.rating == Rating(score=2, family=ErrorFamily.HUMAN_STATES)


def test_an_unknown_family_of_errors_names_the_three(write_rows: Write) -> None:
    rows = [{"video": "a.mp4", "score": 2, "error_family": "lighting"}]
    (rejected,) = read_realism_table(write_rows("clips.jsonl", rows))
    assert isinstance(rejected, Rejected)
    assert "human-states, object-states, human-object-interactions" in rejected.why
