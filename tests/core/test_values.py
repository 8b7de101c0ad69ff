from pathlib import Path

import pytest

from unreel.core.answer import Reply, Usage
from unreel.core.box import Box
from unreel.core.chunks import iter_chunks
from unreel.core.clip import ClipId, Generated
from unreel.core.content_ids import compute_clip_id, digest
from unreel.core.errors import InvalidValueError, UnknownNameError, UnreadableSourceError
from unreel.core.estimate import (
    Coverage,
    Estimate,
    IntervalKind,
    Metric,
    Scorecard,
    Unmeasured,
    describe_interval_coverage,
)
from unreel.core.failure import (
    Failure,
    FailureReason,
    build_damaged_row_failure,
    parse_stored_failure,
)
from unreel.core.input_files import require_safe_weight_index
from unreel.core.judgement import Label, Pair, Rating
from unreel.core.question import Condition, Instrument, Question
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace
from unreel.core.verdict import (
    Position,
    PreferenceVerdict,
    RealismVerdict,
    RealityVerdict,
    Unparsed,
    UnparsedReason,
    is_answer_correct,
)

A = ClipId("a" * 64)
B = ClipId("b" * 64)
BOX = Box(0.1, 0.1, 0.2, 0.2)


def _question(subject: ClipId | Pair = A, **condition: str) -> Question:
    return Question(
        subject=subject, instrument=Instrument("trace", 1), condition=Condition(**condition)
    )


def test_the_nine_categories_of_the_paper_and_other_are_there() -> None:
    assert len(Category) == 10
    assert Category("other") is Category.OTHER


def test_a_track_lies_inside_its_span_in_time_order() -> None:
    span = TimeSpan(100, 200)
    assert Trace(span=span, track=(BoxAt(100, BOX), BoxAt(199, BOX))).span == span
    for instants in [(99,), (200,), (150, 120), (150, 150)]:
        with pytest.raises(InvalidValueError):
            Trace(span=span, track=tuple(BoxAt(at_us, BOX) for at_us in instants))


@pytest.mark.parametrize("score", [0, 6, -3])
def test_a_rating_outside_the_scale_is_refused(score: int) -> None:
    with pytest.raises(InvalidValueError, match="from 1 to 5"):
        Rating(score=score)


def test_a_generated_clip_names_its_creator() -> None:
    with pytest.raises(InvalidValueError, match="unknown"):
        Generated("")


def test_a_pair_needs_two_clips() -> None:
    with pytest.raises(InvalidValueError, match="two different clips"):
        Pair(A, A)


def test_the_same_question_has_the_same_key_everywhere() -> None:
    pinned = "f1526c0acc854779329c92349b2d47acf4bd84ab93300062dc90d03a97c65d98"
    assert _question().key("coin") == pinned


def test_whatever_changes_a_question_changes_its_key() -> None:
    questions = [
        _question().key("coin"),
        _question().key("other"),
        _question(B).key("coin"),
        _question(sampling="uniform-16").key("coin"),
        _question(audio="on").key("coin"),
        _question(watermark="removed").key("coin"),
        _question(thinking="on").key("coin"),
        _question(prompt="direct").key("coin"),
        _question(marks="off").key("coin"),
        _question(marks="on").key("coin"),
        _question(Pair(A, B)).key("coin"),
        _question(Pair(B, A)).key("coin"),
        Question(subject=A, instrument=Instrument("trace", 2), condition=Condition()).key("coin"),
    ]
    assert len(set(questions)) == len(questions)


def test_a_condition_says_nothing_of_marks_where_they_are_as_they_always_were() -> None:
    assert str(Condition()) == (
        "sampling=uniform-8 audio=off watermark=kept thinking=default prompt=paper"
    )
    assert str(Condition(marks="off")) == f"{Condition()} marks=off"


def test_parts_do_not_run_into_each_other() -> None:
    assert digest("ab", "c") != digest("a", "bc")


def test_a_clip_is_known_by_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"reel")
    (tmp_path / "two").write_bytes(b"reel")
    assert compute_clip_id(tmp_path / "one") == compute_clip_id(tmp_path / "two")
    (tmp_path / "two").write_bytes(b"real")
    assert compute_clip_id(tmp_path / "one") != compute_clip_id(tmp_path / "two")


@pytest.mark.parametrize(
    ("value", "low", "high", "n"),
    [(0.5, 0.6, 0.7, 9), (float("nan"), 0, 1, 9), (0.5, 0, 1, 0), (0.5, 0, float("inf"), 1)],
)
def test_an_estimate_that_cannot_be_is_refused(
    value: float, low: float, high: float, n: int
) -> None:
    with pytest.raises(InvalidValueError):
        Estimate(value=value, low=low, high=high, n=n)


def test_intervals_on_few_clusters_are_told_apart_from_those_that_are_known_to_hold() -> None:
    def resting_on(n_clusters: int | None) -> Estimate:
        return Estimate(value=0.5, low=0.4, high=0.6, n=99, n_clusters=n_clusters)

    enough = [resting_on(20), resting_on(None), Unmeasured("no rows")]
    assert describe_interval_coverage(enough) == "Intervals contain the true value 95 times of 100."
    few = describe_interval_coverage([*enough, resting_on(7), resting_on(12)])
    assert "2 of 3 here rest on fewer, the least on 7" in few


@pytest.mark.parametrize("kind", ["seconds", "strength"])
def test_kinds_of_intervals_that_hold_less_often_or_were_not_measured_promise_no_95(
    kind: IntervalKind,
) -> None:
    sure = Estimate(value=3.0, low=2.0, high=4.0, n=99, n_clusters=99)
    assert "95" not in describe_interval_coverage([sure], kind=kind)


def test_an_estimate_prints_its_interval_and_count() -> None:
    half = Estimate(value=0.5, low=0.4, high=0.6, n=96)
    assert str(half) == "0.500 [0.400, 0.600] n=96"
    assert str(half.scaled(-100)) == "-50.000 [-60.000, -40.000] n=96"


def test_a_number_that_does_not_exist_says_why() -> None:
    assert str(Unmeasured("0 of 40 answered")) == "not measured: 0 of 40 answered"


def test_a_scorecard_is_read_by_metric_name() -> None:
    value = Unmeasured("nothing parsed")
    card = Scorecard(
        instrument=Instrument("realism", 1),
        n_questions=3,
        n_answered=1,
        metrics=(Metric(name="plcc", value=value, coverage=Coverage(parsed=0, asked=1)),),
    )
    assert card["plcc"] == value
    assert str(card.metrics[0].coverage) == "0/1 parsed"
    with pytest.raises(UnknownNameError, match="no metric is named 'accuracy'"):
        card["accuracy"]


def test_a_stored_failure_is_read_whatever_its_reason() -> None:
    assert parse_stored_failure("undecodable", "cut") == Failure(FailureReason.UNDECODABLE, "cut")
    unknown = parse_stored_failure("of-a-later-release", None)
    assert unknown.reason is FailureReason.UNSTATED
    assert "of-a-later-release" in unknown.detail
    assert "damaged" in build_damaged_row_failure("no text").detail


UNREADABLE = Unparsed(UnparsedReason.MISSING, "no label")


@pytest.mark.parametrize(
    ("outcome", "truth", "expected"),
    [
        (RealityVerdict(label=Label.GENERATED), None, True),
        (RealityVerdict(label=Label.REAL), None, False),
        (RealityVerdict(label=UNREADABLE), None, None),
        (Failure(FailureReason.UNDECODABLE, "cut"), None, None),
        (PreferenceVerdict(real=Position.SECOND), Position.SECOND, True),
        (PreferenceVerdict(real=Position.FIRST), Position.SECOND, False),
        (RealismVerdict(score=4, problem="", adherence=""), Rating(score=3.0), True),
        (RealismVerdict(score=5, problem="", adherence=""), Rating(score=3.0), False),
    ],
)
def test_an_answer_is_right_wrong_or_neither(
    outcome: object, truth: object, expected: object
) -> None:
    assert is_answer_correct(outcome, truth, Label.GENERATED) is expected


def test_chunks_hold_every_item_in_order() -> None:
    assert list(iter_chunks("abcde", 2)) == [["a", "b"], ["c", "d"], ["e"]]
    assert list(iter_chunks(())) == []


def test_usages_add_up_and_an_estimate_stays_one() -> None:
    known = Usage(input_tokens=1, output_tokens=2)
    estimated = Usage(input_tokens=10, output_tokens=20, is_estimated=True)
    assert known + estimated == Usage(input_tokens=11, output_tokens=22, is_estimated=True)
    assert Reply(text="real").digest != Reply(text="fake").digest


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        ('{"weight_map": {"a": "model.bin"}}', "no safetensors file"),
        ('{"weight_map": {"a": "../model.safetensors"}}', "no safetensors file"),
        ('{"weights": {}}', "no weight_map"),
        ("[]", "no index of weights"),
    ],
)
def test_an_index_of_weights_names_safetensors_of_its_folder_only(
    index: str, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "model.safetensors.index.json"
    file.write_text('{"weight_map": {"a": "model-1.safetensors"}}')
    require_safe_weight_index(file)
    file.write_text(index)
    with pytest.raises(UnreadableSourceError, match=problem):
        require_safe_weight_index(file)
