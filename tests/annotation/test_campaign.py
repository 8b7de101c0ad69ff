"""What a campaign is made of, and what it refuses."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.annotation.campaign import (
    VALUES,
    AnnotationInterface,
    AnnotationRecord,
    AnnotationTask,
    Annotator,
    AnnotatorClipCopy,
    Campaign,
    PassFailAnswer,
    RatingAnswer,
    ScreeningAnswer,
    TraceAnswer,
)
from unreel.core.content_ids import compute_placeholder_clip_id
from unreel.core.errors import InvalidSettingError, InvalidValueError
from unreel.core.judgement import Label, Rating
from unreel.core.span import TimeSpan
from unreel.core.trace import Trace


def _copy(
    name: str = "a", rate: Fraction = Fraction(30000, 1001), n_frames: int = 90
) -> AnnotatorClipCopy:
    return AnnotatorClipCopy(
        clip=compute_placeholder_clip_id(name),
        location=f"{name}.mp4",
        rate=rate,
        n_frames=n_frames,
        width=640,
        height=360,
    )


@given(
    rate=st.sampled_from([Fraction(30000, 1001), Fraction(24), Fraction(24000, 1001), Fraction(7)]),
    frame=st.integers(0, 20_000),
)
def test_a_frame_that_comes_on_is_the_frame_on_the_screen(rate: Fraction, frame: int) -> None:
    copy = _copy(rate=rate, n_frames=20_001)
    assert copy.frame_at(copy.at_us(frame)) == frame
    assert copy.frame_at(copy.at_us(frame + 1) - 1) == frame


def test_a_task_is_known_by_its_clips_alone() -> None:
    one, other = _copy("a"), _copy("b")
    pair = AnnotationTask(names=("a", "b"), copies=(one, other))
    assert (
        pair.id
        == AnnotationTask(
            names=("a", "b"), copies=(one, other), known=PassFailAnswer(passed=True)
        ).id
    )
    assert pair.id != AnnotationTask(names=("a",), copies=(one,)).id


@pytest.mark.parametrize("names", [(), ("b", "a"), ("a", "a"), ("a", "b", "c")])
def test_a_task_of_other_than_one_clip_or_a_sorted_pair_is_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(InvalidValueError):
        AnnotationTask(names=names, copies=tuple(_copy(name) for name in names))


@pytest.mark.parametrize("name", ["", "Ann", "a/b", "a b", "-a", "a" * 64, "é"])
def test_a_name_that_cannot_stand_in_an_address_is_refused(name: str) -> None:
    with pytest.raises(InvalidSettingError, match="lower-case"):
        Annotator(name, "ann@example.org")


@pytest.mark.parametrize("overlap", [0, 1001])
def test_an_overlap_that_nobody_can_give_is_refused(overlap: int) -> None:
    with pytest.raises(InvalidSettingError, match="overlap"):
        Campaign(
            name="c",
            interface=AnnotationInterface.TRACE,
            benchmark="b",
            overlap=overlap,
            guidelines="",
            interface_version="",
        )


def test_values_survive_the_trip_through_json() -> None:
    trace = Trace(span=TimeSpan(0, 10), explanation="a hand melts")
    for value in (
        ScreeningAnswer(keep=False),
        TraceAnswer(traces=(trace,), label=Label.GENERATED),
        TraceAnswer(traces=(), label=None),
        RatingAnswer(rating=Rating(score=3, problem="p", adherence="a")),
        RatingAnswer(rating=None),
    ):
        assert VALUES.validate_json(VALUES.dump_json(value)) == value


def test_an_edited_annotation_has_another_key_and_a_repeated_one_the_same() -> None:
    def record(raw: str) -> AnnotationRecord:
        return AnnotationRecord(
            campaign="c",
            annotator="ann",
            task="t",
            origin="o",
            guidelines_version="g",
            interface_version="i",
            submitted_us=1,
            lead_us=None,
            raw=raw,
            outcome=PassFailAnswer(passed=True),
        )

    assert record("{}").key == record("{}").key != record("[]").key
