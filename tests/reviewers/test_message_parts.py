"""What stands where in a conversation, whoever is asked."""

from dataclasses import replace

import pytest

from unreel.core.failure import Failure
from unreel.core.question import Condition, Instrument
from unreel.reviewers.contract import ReviewRequest, WholeClip
from unreel.reviewers.message_parts import build_message_parts
from unreel.testing.reviewers import sample_clip_input


def ask(**changes: object) -> ReviewRequest:
    shown = {"inputs": (sample_clip_input("a"),), "condition": Condition(), **changes}
    return ReviewRequest(
        key="k", instrument=Instrument("trace", 1), prompt="Look: <video>Real?", **shown
    )


def test_the_frames_of_a_clip_are_one_video_without_marks_of_ours() -> None:
    sheet = ask(inputs=(sample_clip_input("a"), sample_clip_input("b")))
    first, second = (exhibit.frames for exhibit in sheet.inputs)
    assert build_message_parts(sheet, form="video", times="seconds") == (
        "Look: ",
        "Video 1:",
        first,
        "Video 2:",
        second,
        "Real?",
    )


def test_a_file_goes_as_it_is_with_its_sound_behind_it() -> None:
    whole = WholeClip(b"bytes", "video/mp4")
    exhibit = replace(sample_clip_input("a"), whole=whole, sound_wav=b"wav")
    sheet = ask(inputs=(exhibit,), condition=Condition(audio="on"))
    assert build_message_parts(sheet, form="clip", times="seconds") == (
        "Look: ",
        whole,
        b"wav",
        "Real?",
    )


@pytest.mark.parametrize("form", ["frames", "video", "clip"])
def test_a_clip_of_which_nothing_came_is_not_asked_about(form: str) -> None:
    bare = replace(sample_clip_input("a"), frames=())
    assert isinstance(build_message_parts(ask(inputs=(bare,)), form=form, times="seconds"), Failure)
