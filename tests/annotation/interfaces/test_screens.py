"""The screens say what the papers' people read, and tell nobody the answer."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from annotation.interfaces.examples import copy_of, pair, single, task_for
from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationTask,
    TaskAssignment,
    TraceAnswer,
    VoteAnswer,
)
from unreel.annotation.interfaces.label_studio_tasks import (
    AnnotationScreen,
    build_label_studio_task_data,
    build_prefilled_results,
    get_annotation_screen,
    get_screen_controls,
    parse_judgement,
)
from unreel.core.box import Box
from unreel.core.errors import InvalidSettingError
from unreel.core.judgement import Label
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace

QUESTION = "Does the hand keep five fingers?"
PRINTED = {
    AnnotationInterface.SCREENING: "vrb-people-screening",
    AnnotationInterface.REALISM: "vrb-people-scoring",
    AnnotationInterface.PREFERENCE: "vrb-people-preference",
}
OURS = {
    AnnotationInterface.SCREENING: set[str](),
    AnnotationInterface.REALISM: {
        "What are the errors about? Leave it open where there are none.",
        "Human States",
        "Object States",
        "Human-Object Interactions",
    },
    AnnotationInterface.PREFERENCE: {"First Video (Left)", "Second Video (Right)"},
}
"""What our screens show beside the printed words: the names of the sides, and one question more."""


def screen(interface: AnnotationInterface) -> AnnotationScreen:
    return get_annotation_screen(
        interface, question=QUESTION if interface is AnnotationInterface.PASS_FAIL else ""
    )


def visible(config: str) -> list[str]:
    """What a screen shows, in its order."""
    shown: list[str] = []
    for tag in ET.fromstring(config).iter():
        if tag.tag == "Markdown":
            shown += re.split(r"\n+", (tag.text or "").strip())
        elif tag.tag in {"Header", "Choice"}:
            shown.append(tag.attrib["value"])
        elif tag.tag == "TextArea":
            shown.append(tag.attrib["placeholder"])
    return shown


def bare(line: str) -> str:
    """A line without the marks of headings, bold type and lists."""
    return re.sub(r"^[#\-\s]+|\*\*", "", line).strip()


@pytest.mark.parametrize("interface", PRINTED)
def test_a_screen_shows_the_printed_words_and_no_others(
    shared: Path, interface: AnnotationInterface
) -> None:
    text = (shared / "prompts" / f"{PRINTED[interface]}.txt").read_text(encoding="utf-8")
    printed = [bare(part) for part in re.split(r"\n|<sup>.{3}</sup>", text)]
    printed = [line for line in printed if line not in {"", "Submit"}]
    shown = [bare(line) for line in visible(screen(interface).config)]
    ours = OURS[interface]
    assert [line for line in shown if line not in ours] == printed


@pytest.mark.parametrize("interface", AnnotationInterface)
def test_every_choice_has_a_key_of_its_own(interface: AnnotationInterface) -> None:
    one = screen(interface)
    tree = ET.fromstring(one.config)
    choices = [*tree.iter("Choice"), *(tag for tag in tree.iter("Label") if "hotkey" in tag.attrib)]
    assert len(one.hotkeys) == len(choices) >= 2
    words = {word for control in get_screen_controls(interface).values() for word in control.words}
    marks = {tag.attrib["value"] for tag in tree.iter("Label") if "hotkey" in tag.attrib}
    assert set(one.hotkeys.values()) == words | marks


@pytest.mark.parametrize("interface", AnnotationInterface)
def test_a_screen_tells_the_player_the_rate_of_every_clip(interface: AnnotationInterface) -> None:
    one = screen(interface)
    videos = list(ET.fromstring(one.config).iter("Video"))
    task = task_for(interface)
    shown = TaskAssignment(annotator="ann", task=task.id, batch=1, position=0)
    data = build_label_studio_task_data(
        one, task, shown, [f"u{number}" for number in range(len(task.copies))]
    )
    for tag in videos:
        assert tag.attrib["value"].removeprefix("$") in data
        assert tag.attrib["framerate"].removeprefix("$") in data


def test_another_question_is_another_version() -> None:
    one, other = (
        get_annotation_screen(AnnotationInterface.PASS_FAIL, question=words)
        for words in (QUESTION, "Else?")
    )
    assert one.version != other.version
    assert get_annotation_screen(AnnotationInterface.PASS_FAIL, question=QUESTION) == one
    assert len({screen(interface).version for interface in AnnotationInterface}) == len(
        AnnotationInterface
    )


@pytest.mark.parametrize("question", ["", " ", "x" * 301, "Is it $label?", "a\nb", "\x1b[2J"])
def test_a_question_that_a_screen_cannot_show_is_refused(question: str) -> None:
    with pytest.raises(InvalidSettingError, match="question"):
        get_annotation_screen(AnnotationInterface.PASS_FAIL, question=question)


def test_a_question_is_text_and_never_markup() -> None:
    question = 'Is "a < b" & \'c\' true? <Choice value="x" hotkey="9"/>'
    tree = ET.fromstring(
        get_annotation_screen(AnnotationInterface.PASS_FAIL, question=question).config
    )
    assert question in {tag.get("value") for tag in tree.iter("Header")}


TRACE = Trace(
    span=TimeSpan(0, 500_000),
    track=(BoxAt(0, Box(0.1, 0.1, 0.5, 0.5)),),
    categories=frozenset({Category.OBJECT_MERGING}),
    explanation="The cup melts.",
)


def test_nothing_that_a_task_shows_tells_its_answer() -> None:
    secret = AnnotationTask(
        names=("sora-generated-0007.mp4",),
        copies=(copy_of("one"),),
        group="scene-of-sora",
        known=VoteAnswer(label=Label.GENERATED),
        prefill=TraceAnswer(traces=(TRACE,), label=Label.GENERATED),
    )
    shown = TaskAssignment(annotator="ann", task=secret.id, batch=1, position=4)
    data = build_label_studio_task_data(
        screen(AnnotationInterface.REALITY), secret, shown, ["/media/1.mp4"]
    )
    assert data == {
        "video": "/media/1.mp4",
        "fps": "29.97002997003",
        "unreel_task": secret.id,
        "position": 5,
    }


@pytest.mark.parametrize("swapped", [False, True])
def test_the_clips_of_a_pair_stand_on_the_sides_that_were_drawn_for_them(*, swapped: bool) -> None:
    shown = TaskAssignment(annotator="ann", task=pair().id, batch=1, position=0, swapped=swapped)
    data = build_label_studio_task_data(
        screen(AnnotationInterface.PREFERENCE), pair(), shown, ["/one", "/two"]
    )
    left, right = (("/two", "25"), ("/one", "24")) if swapped else (("/one", "24"), ("/two", "25"))
    assert (data["left"], data["fps_left"]) == left
    assert (data["right"], data["fps_right"]) == right


def test_marks_made_before_stand_on_the_screen_as_they_were_made() -> None:
    value = TraceAnswer(traces=(TRACE,), label=Label.GENERATED)
    task = single(prefill=value)
    back = parse_judgement(
        AnnotationInterface.TRACE,
        build_prefilled_results(task, AnnotationInterface.TRACE, swapped=False),
        task,
        swapped=False,
    )
    assert isinstance(back, TraceAnswer)
    assert back.traces[0].categories == TRACE.categories


def test_a_mark_without_a_place_is_left_out_and_the_rest_is_shown() -> None:
    nowhere = Trace(span=TimeSpan(0, 1000))
    task = single(prefill=TraceAnswer(traces=(nowhere, TRACE), label=Label.GENERATED))
    boxes = [
        one
        for one in build_prefilled_results(task, AnnotationInterface.TRACE, swapped=False)
        if one["from_name"] == "box"
    ]
    assert len(boxes) == 1
