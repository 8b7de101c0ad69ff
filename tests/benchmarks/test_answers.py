"""Answers are joined with entries; what does not fit is told."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from unreel.benchmarks.clip_tables import read_realism_table
from unreel.benchmarks.deeptrace import read_deeptrace_benchmark
from unreel.benchmarks.entry import DeclaredFacts, Entry, Rejected
from unreel.benchmarks.imported_answers import build_scorable_rows, join_answers_with_entries
from unreel.core.answer import Reply
from unreel.core.clip import Generated, Real
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.estimate import Estimate
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Label
from unreel.protocols.protocol import get_protocol

ENTRIES = [
    Entry(name="a", location="videos/a.mp4", origin=Generated("Veo")),
    Entry(name="b", location="videos/b.mp4", origin=Real()),
    Entry(name="c", location="videos/c.mp4", origin=Real()),
]


def answers(tmp_path: Path, rows: list[dict[str, Any]]) -> Path:
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("column", ["name", "clip", "video", "video_id", "file"])
def test_an_answer_finds_its_entry(tmp_path: Path, column: str) -> None:
    joined = join_answers_with_entries(
        ENTRIES, answers(tmp_path, [{column: "a", "text": " FAKE \n"}])
    )
    assert [outcome for _, outcome in joined.pairs] == [Reply(text=" FAKE \n"), None, None]
    assert joined.n_unanswered == 2


def test_an_answer_may_name_the_location(tmp_path: Path) -> None:
    joined = join_answers_with_entries(
        ENTRIES, answers(tmp_path, [{"file": "videos/b.mp4", "text": "x"}])
    )
    assert [entry.name for entry, outcome in joined.pairs if outcome] == ["b"]
    assert joined.unknown == ()


def test_a_csv_of_answers_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text(
        'video,text,failure\na,"FAKE, because",\nb,,rate-limited: slow\n', encoding="utf-8"
    )
    joined = join_answers_with_entries(ENTRIES, path)
    assert [outcome for _, outcome in joined.pairs] == [
        Reply(text="FAKE, because"),
        Failure(FailureReason.RATE_LIMITED, "slow"),
        None,
    ]


def test_names_that_the_benchmark_lacks_are_reported(tmp_path: Path) -> None:
    joined = join_answers_with_entries(
        ENTRIES, answers(tmp_path, [{"name": "z", "text": "x"}, {"name": "a", "text": "y"}])
    )
    assert joined.unknown == ("z",)


@pytest.mark.parametrize(
    "rows",
    [
        [{"name": "a", "text": "x"}, {"name": "a", "text": "x"}],
        [{"name": "a", "text": "x"}, {"name": "videos/a.mp4", "text": "x"}],
    ],
)
def test_two_answers_about_one_clip_are_refused(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    with pytest.raises(UnreadableSourceError, match=r"two answers about 'a'.*Keep one answer"):
        join_answers_with_entries(ENTRIES, answers(tmp_path, rows))


def test_a_failure_in_free_words_stays_a_failure(tmp_path: Path) -> None:
    rows = [
        {"name": "a", "failure": "HTTP 503"},
        {"name": "b", "text": ""},
        {"name": "c", "text": None},
    ]
    joined = join_answers_with_entries(ENTRIES, answers(tmp_path, rows))
    assert [outcome for _, outcome in joined.pairs] == [
        Failure(FailureReason.UNSTATED, "HTTP 503"),
        Failure(FailureReason.EMPTY_REPLY, "the answers file contains no text"),
        Failure(FailureReason.EMPTY_REPLY, "the answers file contains no text"),
    ]


@pytest.mark.parametrize(
    "row",
    [
        {"text": "x"},
        {"name": "", "text": "x"},
        {"name": "a", "text": "x", "failure": "refused"},
        {"name": "a", "text": ["x"]},
        {"name": "a", "text": "\ud800"},
        {"name": {}, "text": "x"},
    ],
)
def test_a_damaged_answer_is_rejected_and_its_clip_not_asked(
    tmp_path: Path, row: dict[str, Any]
) -> None:
    joined = join_answers_with_entries(
        ENTRIES, answers(tmp_path, [row, {"name": "b", "text": "x"}])
    )
    assert [rejected.name for rejected in joined.rejected] == ["row 1"]
    assert joined.n_unanswered == 2


def test_a_line_that_is_no_json_is_rejected(tmp_path: Path) -> None:
    path = answers(tmp_path, [{"name": "a", "text": "x"}])
    path.write_text(path.read_text(encoding="utf-8") + "{half a li", encoding="utf-8")
    assert [row.name for row in join_answers_with_entries(ENTRIES, path).rejected] == ["row 2"]


def test_rejected_entries_are_kept_in_sight(tmp_path: Path) -> None:
    rows = [*ENTRIES, Rejected("d", "broken")]
    joined = join_answers_with_entries(rows, answers(tmp_path, [{"name": "a", "text": "x"}]))
    assert joined.rejected == (Rejected("d", "broken"),)


def test_a_file_without_any_answer_says_which_columns_it_needs(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSourceError, match="Write the columns text and one of name"):
        join_answers_with_entries(ENTRIES, answers(tmp_path, [{"question": "a", "text": "x"}]))


def test_reality_rows_hold_who_made_the_clip(tmp_path: Path) -> None:
    rows = [{"name": "a", "text": "<answer>0</answer>"}, {"name": "b", "failure": "refused: no"}]
    scorable = build_scorable_rows(
        join_answers_with_entries(ENTRIES, answers(tmp_path, rows)), get_protocol("reality")
    )
    assert [row.truth for row in scorable.rows] == [Generated("Veo"), Real()]
    assert scorable.rows[0].outcome.label is Label.GENERATED
    assert isinstance(scorable.rows[1].outcome, Failure)
    assert scorable.not_asked == ("c",)


def test_a_perfect_reviewer_of_the_test_split_scores_100_on_440_and_332_rows(
    deeptrace: Path, tmp_path: Path
) -> None:
    entries = [
        e for e in read_deeptrace_benchmark(deeptrace) if isinstance(e, Entry) and e.split == "test"
    ]
    rows = []
    for entry in entries:
        text = "REAL"
        if entry.traces:
            start = entry.traces[0].span.start_us / 1_000_000
            text = (
                "FAKE <coordinates>[320, 180, 960, 540]</coordinates>"
                f"<start_time>{start}</start_time><explanation>paw</explanation>"
            )
        rows.append({"video_id": entry.name, "text": text})
    joined = join_answers_with_entries(entries, answers(tmp_path, rows))
    trace = get_protocol("trace")
    scorable = build_scorable_rows(joined, trace, space="pixel")
    assert len(scorable.rows) == 440 + 332
    card = trace.score(scorable.rows, seed=1)
    for name, n in (("accuracy", 772), ("fake-accuracy", 440), ("real-accuracy", 332)):
        value = card[name]
        assert isinstance(value, Estimate)
        assert value.value == 100
        assert value.n == n
    iou = card["box-iou"]
    assert isinstance(iou, Estimate)
    assert iou.value == pytest.approx(100)


def test_realism_rows_hold_the_agreed_rating(tmp_path: Path) -> None:
    table = tmp_path / "vrb.csv"
    table.write_text("video,score\na.mp4,2\nb.mp4,4\n", encoding="utf-8")
    rows = [{"name": "a.mp4", "text": "<answer>2</answer>"}]
    joined = join_answers_with_entries(read_realism_table(table), answers(tmp_path, rows))
    scorable = build_scorable_rows(joined, get_protocol("realism"))
    assert [row.truth.score for row in scorable.rows] == [2]
    assert scorable.not_asked == ("b.mp4",)


def test_an_entry_that_lacks_its_truth_is_told_and_not_scored(tmp_path: Path) -> None:
    joined = join_answers_with_entries(ENTRIES, answers(tmp_path, [{"name": "a", "text": "FAKE"}]))
    for name, space, why in (("trace", "unit", "duration"), ("realism", None, "rating")):
        scorable = build_scorable_rows(joined, get_protocol(name), space=space)
        assert scorable.rows == ()
        assert [row.name for row in scorable.without_truth] == ["a"]
        assert why in scorable.without_truth[0].why


def test_boxes_in_pixels_need_the_size_of_the_frame(tmp_path: Path) -> None:
    known = DeclaredFacts(duration_us=1_000_000)
    entry = Entry(name="a", location="a.mp4", origin=Real(), facts=known)
    joined = join_answers_with_entries([entry], answers(tmp_path, [{"name": "a", "text": "REAL"}]))
    assert (
        "frame size"
        in build_scorable_rows(joined, get_protocol("trace"), space="pixel").without_truth[0].why
    )
    assert len(build_scorable_rows(joined, get_protocol("trace"), space="permille").rows) == 1


def test_an_unknown_space_or_protocol_is_the_callers_mistake(tmp_path: Path) -> None:
    joined = join_answers_with_entries(ENTRIES, answers(tmp_path, [{"name": "a", "text": "FAKE"}]))
    with pytest.raises(InvalidValueError, match="no box space is named"):
        build_scorable_rows(joined, get_protocol("trace"), space="inches")
    with pytest.raises(InvalidValueError, match="need their space"):
        build_scorable_rows(
            join_answers_with_entries(
                [Entry(name="a", location="a", origin=Real(), facts=DeclaredFacts(duration_us=1))],
                answers(tmp_path, [{"name": "a", "text": "REAL"}]),
            ),
            get_protocol("trace"),
        )
    with pytest.raises(InvalidValueError, match=r"preference needs a pair. Join"):
        build_scorable_rows(joined, get_protocol("preference"))


def test_a_file_name_is_enough_where_one_clip_alone_has_it(tmp_path: Path) -> None:
    joined = join_answers_with_entries(ENTRIES, answers(tmp_path, [{"file": "b.mp4", "text": "x"}]))
    assert [pair[0].name for pair in joined.pairs if pair[1] is not None] == ["b"]
    twins = [replace(entry, location=f"{entry.name}/same.mp4") for entry in ENTRIES]
    joined = join_answers_with_entries(
        twins, answers(tmp_path, [{"file": "same.mp4", "text": "x"}])
    )
    assert joined.unknown == ("same.mp4",)


def test_answers_to_another_instrument_are_passed_over(tmp_path: Path) -> None:
    rows = [
        {"clip": "a", "protocol": "trace", "text": "of trace"},
        {"clip": "a", "protocol": "reality", "text": "of reality"},
        {"clip": "b", "text": "of any"},
    ]
    joined = join_answers_with_entries(ENTRIES, answers(tmp_path, rows), protocol="reality")
    said = {pair[0].name: pair[1] for pair in joined.pairs}
    assert said["a"] == Reply(text="of reality")
    assert said["b"] == Reply(text="of any")


def test_a_question_without_a_clip_cannot_be_scored(tmp_path: Path) -> None:
    rows = [{"question": "abc", "text": "x"}, {"name": "a", "text": "x"}]
    assert [
        row.name for row in join_answers_with_entries(ENTRIES, answers(tmp_path, rows)).rejected
    ] == ["abc"]
