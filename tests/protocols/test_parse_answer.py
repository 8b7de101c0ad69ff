"""The one way from a text to a verdict."""

from unreel.core.judgement import Label
from unreel.core.verdict import RealityVerdict, TraceVerdict
from unreel.protocols.answer_text import parse_answer_text
from unreel.protocols.presentation import format_frame_time, format_question_clip_heading
from unreel.protocols.protocol import get_protocol


def test_boxes_are_read_in_the_space_and_size_that_were_declared() -> None:
    said = parse_answer_text(
        "FAKE <coordinates>[96, 64, 480, 320]</coordinates>",
        get_protocol("trace"),
        prompt="paper",
        mode="strict",
        box_space="pixel",
        size=(960, 640),
    )
    assert isinstance(said, TraceVerdict)
    assert (said.box.x0, said.box.y0, said.box.x1, said.box.y1) == (0.1, 0.1, 0.5, 0.5)


def test_an_instrument_without_boxes_needs_no_space() -> None:
    said = parse_answer_text(
        "<answer>1</answer>",
        get_protocol("reality"),
        prompt="paper",
        mode="strict",
        box_space=None,
        size=(1, 1),
    )
    assert isinstance(said, RealityVerdict)
    assert said.label is Label.REAL


def test_marks_tell_seconds_or_a_clock_and_number_clips_from_one() -> None:
    from fractions import Fraction

    assert format_frame_time(Fraction(75, 2)) == "37.50 s"
    assert format_frame_time(Fraction(151, 2), "clock") == "01:15.50"
    assert format_question_clip_heading(1) == "Video 1:"
