"""Answers about pairs are joined with two clips in the order shown, and scored by order."""

import json
from pathlib import Path
from typing import Any

import pytest

from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.imported_answers import build_scorable_rows, join_answers_with_entries
from unreel.core.clip import Generated, Real
from unreel.core.errors import UnreadableSourceError
from unreel.core.estimate import Estimate, Scorecard, Unmeasured
from unreel.core.verdict import Position
from unreel.protocols.protocol import get_protocol

SCENES = ("s1", "s2", "s3", "s4")
ENTRIES = [
    entry
    for scene in SCENES
    for entry in (
        Entry(name=f"real/{scene}", location=f"real/{scene}.mp4", origin=Real(), group=scene),
        Entry(
            name=f"Wan/{scene}", location=f"Wan/{scene}.mp4", origin=Generated("Wan"), group=scene
        ),
    )
]
REAL_FIRST = [f"real/{scene} | Wan/{scene}" for scene in SCENES]
REAL_SECOND = [f"Wan/{scene} | real/{scene}" for scene in SCENES]


def write(tmp_path: Path, rows: list[dict[str, Any]]) -> Path:
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def scored(texts: dict[str, str]) -> Scorecard:
    preference = get_protocol("preference")
    joined = join_answers_with_entries(ENTRIES, texts, "pair")
    return preference.score(build_scorable_rows(joined, preference).rows, seed=0)


def value(scorecard: Scorecard, name: str) -> float:
    measured = scorecard[name]
    assert isinstance(measured, Estimate)
    return measured.value


def test_a_pair_is_named_as_exports_name_it_or_in_two_columns(tmp_path: Path) -> None:
    rows = [
        {"name": "real/s1 | Wan/s1", "text": "1"},
        {"name": "Wan/s2.mp4 | real/s2.mp4", "text": "2"},
        {"name": "x", "first": "Wan/s3", "second": "real/s3", "text": "1"},
    ]
    joined = join_answers_with_entries(ENTRIES, write(tmp_path, rows), "pair")
    scorable = build_scorable_rows(joined, get_protocol("preference"))
    assert [row.truth for row in scorable.rows] == [
        Position.FIRST,
        Position.SECOND,
        Position.SECOND,
    ]
    assert [row.source for row in scorable.rows] == ["s1", "s2", "s3"]
    assert scorable.not_asked == ("real/s4 | Wan/s4",)


def test_one_order_throughout_gives_its_figure_and_leaves_the_other_unmeasured() -> None:
    card = scored(dict(zip(REAL_FIRST, "1112", strict=True)))
    assert value(card, "pooled") == value(card, "real-first-accuracy") == 75
    assert isinstance(card["real-second-accuracy"], Unmeasured)
    assert isinstance(card["accuracy"], Unmeasured)


def test_a_pair_shown_in_both_orders_counts_in_each() -> None:
    both = dict.fromkeys(REAL_FIRST, "1") | dict.fromkeys(REAL_SECOND, "1")
    card = scored(both)
    assert card.n_questions == 8
    assert (value(card, "real-first-accuracy"), value(card, "real-second-accuracy")) == (100, 0)
    assert (value(card, "accuracy"), value(card, "position-bias")) == (50, 50)


def test_pairs_without_a_group_are_scored_by_their_names() -> None:
    entries = [
        Entry(name="a", location="a.mp4", origin=Real()),
        Entry(name="b", location="b.mp4", origin=Generated("Wan")),
        Entry(name="c", location="c.mp4", origin=Generated("Wan")),
    ]
    joined = join_answers_with_entries(entries, {"b | a": "2"}, "pair")
    assert len(build_scorable_rows(joined, get_protocol("preference")).rows) == 1
    assert [row.name for row in joined.rejected] == ["c"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("real/s1 | real/s2", "both clips are real"),
        ("Wan/s1 | Wan/s1", "both clips are generated"),
        ("real/s1 | Wan/s2", "Pair clips of one group"),
        ("real/s2.mp4 | Wan/s2", "answered as 'real/s2 | Wan/s2' too"),
    ],
)
def test_two_clips_that_are_no_pair_are_rejected_with_the_reason(name: str, why: str) -> None:
    joined = join_answers_with_entries(ENTRIES, {"real/s2 | Wan/s2": "1", name: "1"}, "pair")
    assert [row.name for row in joined.rejected] == [name]
    assert why in joined.rejected[0].why


def test_a_mark_inside_names_is_cut_where_both_sides_are_clips() -> None:
    entries = [
        Entry(name="a | b", location="1.mp4", origin=Real(), group="g"),
        Entry(name="c", location="2.mp4", origin=Generated("Wan"), group="g"),
    ]
    (asked, outcome), *rest = join_answers_with_entries(entries, {"a | b | c": "1"}, "pair").pairs
    assert (asked.name, outcome is not None, rest) == ("a | b | c", True, [])
    doubtful = [*entries, Entry(name="a", location="3.mp4", origin=Real(), group="g")]
    doubtful.append(Entry(name="b | c", location="4.mp4", origin=Generated("Wan"), group="g"))
    joined = join_answers_with_entries(doubtful, {"a | b | c": "1"}, "pair")
    assert "Rename the clips" in next(r.why for r in joined.rejected if r.name == "a | b | c")


def test_answers_that_name_single_clips_are_told_how_to_name_pairs(tmp_path: Path) -> None:
    path = write(tmp_path, [{"name": "real/s1", "text": "1"}])
    with pytest.raises(UnreadableSourceError, match=r"'FIRST \| SECOND' or in the columns first"):
        join_answers_with_entries(ENTRIES, path, "pair")


def test_rows_of_the_benchmark_that_cannot_be_used_stay_in_sight() -> None:
    joined = join_answers_with_entries(
        [*ENTRIES, Rejected("d", "broken")], {REAL_FIRST[0]: "1"}, "pair"
    )
    assert joined.rejected == (Rejected("d", "broken"),)
    assert joined.n_unanswered == 3
