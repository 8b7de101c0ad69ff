import pytest

from unreel.core.box import Box
from unreel.core.clip import ClipId
from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Estimate, IntervalKind, Unmeasured, describe_interval_coverage
from unreel.core.failure import (
    Failure,
    FailureReason,
    build_damaged_row_failure,
    parse_stored_failure,
)
from unreel.core.judgement import Label, Pair, Rating
from unreel.core.question import Condition, Instrument, Question
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Trace
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
