"""What the server stores is read whole, or quarantined with its reason; nothing raises."""

import json
import math
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.interfaces.drawn_boxes import box_on
from annotation.interfaces.examples import copies, pair, single, task_for, traced
from pace import slowness
from unreel.annotation.campaign import (
    VALUES,
    AnnotationInterface,
    AnnotationTask,
    AnnotatorClipCopy,
    PreferenceAnswer,
    QuarantineReason,
    RatingAnswer,
    SubmissionQuarantine,
    TraceAnswer,
    Value,
)
from unreel.annotation.interfaces.label_studio_tasks import (
    build_label_studio_results,
    convert_trace_to_key_frames,
    get_screen_controls,
    parse_judgement,
)
from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Label, Rating
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace
from unreel.core.verdict import Position

TASK = single()
COPY = TASK.copies[0]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=12,
)


def entry(frame: object = 1, **changed: object) -> dict[str, object]:
    shape = {"x": 10, "y": 20, "width": 30, "height": 40, "rotation": 0, "enabled": True}
    return {"frame": frame, "time": 99.0, **shape, **changed}


def box(*sequence: object, region: object = "a", **value: object) -> dict[str, Any]:
    return {
        "id": region,
        "from_name": "box",
        "to_name": "video",
        "type": "videorectangle",
        "value": {"sequence": list(sequence), **value},
    }


def said(name: str, *words: object, region: object = "a") -> dict[str, Any]:
    value = {"choices": list(words)}
    return {"id": region, "from_name": name, "to_name": "video", "type": "choices", "value": value}


def written(name: str, text: object, region: str = "a") -> dict[str, Any]:
    value = {"text": text}
    return {"id": region, "from_name": name, "to_name": "video", "type": "textarea", "value": value}


def traces_of(*sequence: object, **value: object) -> list[dict[str, Any]]:
    """A clip with one box, of the category `other`."""
    return [
        said("verdict", "traces", region="v"),
        box(*sequence, **value),
        said("category", "other"),
    ]


def read(
    results: object, interface: AnnotationInterface = AnnotationInterface.TRACE
) -> Value | SubmissionQuarantine:
    return parse_judgement(interface, results, task_for(interface), swapped=False)


def reason(
    results: object, interface: AnnotationInterface = AnnotationInterface.TRACE
) -> QuarantineReason:
    found = read(results, interface)
    assert isinstance(found, SubmissionQuarantine)
    return found.reason


def one_trace(results: object) -> Trace:
    found = read(results)
    assert isinstance(found, TraceAnswer)
    (trace,) = found.traces
    return trace


def test_a_key_frame_that_is_switched_off_is_the_last_one_seen() -> None:
    trace = one_trace(traces_of(entry(3), entry(11, enabled=False)))
    assert trace.span == TimeSpan(COPY.at_us(2), COPY.at_us(11))


def test_a_box_that_comes_back_is_a_trace_for_each_stretch() -> None:
    found = read(traces_of(entry(3), entry(11, enabled=False), entry(20), entry(22, enabled=False)))
    assert isinstance(found, TraceAnswer)
    assert [trace.span for trace in found.traces] == [
        TimeSpan(COPY.at_us(2), COPY.at_us(11)),
        TimeSpan(COPY.at_us(19), COPY.at_us(22)),
    ]


def test_a_box_that_hangs_over_the_edge_is_cut_there() -> None:
    trace = one_trace(traces_of(entry(1, x=-10, width=30, y=90, height=20)))
    assert trace.track[0].box == Box(0, 0.9, 0.2, 1)


def test_several_categories_and_the_reason_belong_to_their_box() -> None:
    results = [
        said("verdict", "traces", region="v"),
        box(entry(1), labels=["trace"]),
        said("category", "object-merging", "other"),
        written("explanation", ["The cup melts."]),
    ]
    trace = one_trace(results)
    assert trace.categories == {Category.OBJECT_MERGING, Category.OTHER}
    assert trace.explanation == "The cup melts."


BAD_KEY_FRAMES = {
    "frame 0": (entry(0), QuarantineReason.OUT_OF_RANGE),
    "a frame after the last": (entry(62), QuarantineReason.OUT_OF_RANGE),
    "a frame without end": (entry(10**400), QuarantineReason.OUT_OF_RANGE),
    "half a frame": (entry(1.5), QuarantineReason.MALFORMED),
    "a frame that is true": (entry(True), QuarantineReason.MALFORMED),  # noqa: FBT003
    "a frame as text": (entry("1"), QuarantineReason.MALFORMED),
    "no number": (entry(x=math.nan), QuarantineReason.OUT_OF_RANGE),
    "infinite": (entry(width=math.inf), QuarantineReason.OUT_OF_RANGE),
    "a number too large for a float": (entry(x=10**400), QuarantineReason.OUT_OF_RANGE),
    "negative size": (entry(width=-5), QuarantineReason.OUT_OF_RANGE),
    "no size": (entry(height=0), QuarantineReason.OUT_OF_RANGE),
    "beside the picture": (entry(x=101), QuarantineReason.OUT_OF_RANGE),
    "turned": (entry(rotation=12), QuarantineReason.OUT_OF_RANGE),
    "a side as text": (entry(y="20"), QuarantineReason.MALFORMED),
    "a side missing": (entry(y=None), QuarantineReason.MALFORMED),
    "visibility as a number": (entry(enabled=1), QuarantineReason.MALFORMED),
    "no key frame at all": ("junk", QuarantineReason.MALFORMED),
}


@pytest.mark.parametrize("name", BAD_KEY_FRAMES)
def test_a_key_frame_that_cannot_be_is_quarantined(name: str) -> None:
    bad, expected = BAD_KEY_FRAMES[name]
    assert reason(traces_of(bad)) is expected


BAD_RESULTS = {
    "nothing": ([], QuarantineReason.MISSING),
    "no list": ({"result": []}, QuarantineReason.MALFORMED),
    "text": ("[]", QuarantineReason.MALFORMED),
    "a result that is none": ([None], QuarantineReason.MALFORMED),
    "unsorted": (traces_of(entry(5), entry(3)), QuarantineReason.MALFORMED),
    "doubled": (traces_of(entry(5), entry(5)), QuarantineReason.MALFORMED),
    "no key frames": (traces_of(), QuarantineReason.MALFORMED),
    "no category": (traces_of(entry(1))[:2], QuarantineReason.MISSING),
    "no box": (
        [said("verdict", "traces", region="v"), said("category", "other")],
        QuarantineReason.MALFORMED,
    ),
    "traces without a box": ([said("verdict", "traces")], QuarantineReason.CONTRADICTORY),
    "a box in a clip that looks real": (
        [said("verdict", "looks-real"), *traces_of(entry(1))[1:]],
        QuarantineReason.CONTRADICTORY,
    ),
    "a box in a clip that does not tell": (
        [said("verdict", "cannot-tell"), *traces_of(entry(1))[1:]],
        QuarantineReason.CONTRADICTORY,
    ),
    "two verdicts": ([said("verdict", "looks-real", "traces")], QuarantineReason.CONTRADICTORY),
    "the verdict twice": (
        [said("verdict", "looks-real"), said("verdict", "looks-real")],
        QuarantineReason.MALFORMED,
    ),
    "another word": ([said("verdict", "maybe")], QuarantineReason.UNKNOWN_WORD),
    "a word as a number": ([said("verdict", 1)], QuarantineReason.MALFORMED),
    "another question": ([said("score", "5")], QuarantineReason.UNKNOWN_WORD),
    "another label": (traces_of(entry(1), labels=["cat"]), QuarantineReason.UNKNOWN_WORD),
    "a category twice": (
        [*traces_of(entry(1))[:2], said("category", "other", "other")],
        QuarantineReason.MALFORMED,
    ),
    "a text as a number": (
        [*traces_of(entry(1)), written("explanation", 5)],
        QuarantineReason.MALFORMED,
    ),
    "a book": (
        [*traces_of(entry(1)), written("explanation", ["x" * 10_000_000])],
        QuarantineReason.TOO_LARGE,
    ),
    "a library": ([said("verdict", "traces")] * 100_000, QuarantineReason.TOO_LARGE),
    "a key frame for every frame and one": (
        traces_of(*map(entry, range(1, 63))),
        QuarantineReason.TOO_LARGE,
    ),
    "a million key frames": (traces_of(*[entry(1)] * 1_000_000), QuarantineReason.TOO_LARGE),
    "more key frames than anybody sets": (
        [
            said("verdict", "traces", region="v"),
            *(box(*[entry(1)] * 101, region=f"r{number}") for number in range(200)),
        ],
        QuarantineReason.TOO_LARGE,
    ),
    "no id": ([said("verdict", "traces"), box(entry(1), region=None)], QuarantineReason.MALFORMED),
    "201 boxes": (
        [
            said("verdict", "traces", region="v"),
            *(box(entry(1), region=f"r{number}") for number in range(201)),
        ],
        QuarantineReason.TOO_LARGE,
    ),
}


@pytest.mark.parametrize("name", BAD_RESULTS)
def test_results_that_are_no_judgement_are_quarantined_at_once(name: str) -> None:
    bad, expected = BAD_RESULTS[name]
    started_s = time.process_time()
    assert reason(bad) is expected
    assert time.process_time() - started_s < slowness()


def test_what_would_steer_a_terminal_or_break_a_table_is_marked_in_an_explanation() -> None:
    trace = one_trace([*traces_of(entry(1)), written("explanation", "a\x00b\x1b[2J\ud800")])
    assert trace.explanation == "a\ufffdb\ufffd[2J\ufffd"


@pytest.mark.parametrize("missing", ["score", "problem", "adherence"])
def test_a_score_needs_its_reasons(missing: str) -> None:
    whole = [
        said("score", "3"),
        written("problem", ["The ball floats."]),
        written("adherence", ["Noticeable."]),
    ]
    rating = Rating(score=3, problem="The ball floats.", adherence="Noticeable.")
    assert read(whole, AnnotationInterface.REALISM) == RatingAnswer(rating=rating)
    less = [result for result in whole if result["from_name"] != missing]
    assert reason(less, AnnotationInterface.REALISM) is QuarantineReason.MISSING


@pytest.mark.parametrize("interface", AnnotationInterface)
def test_an_annotation_without_answers_is_quarantined(interface: AnnotationInterface) -> None:
    assert reason([], interface) is QuarantineReason.MISSING


@pytest.mark.parametrize("swapped", [False, True])
def test_a_preference_is_told_in_the_order_of_the_names(*, swapped: bool) -> None:
    (left,) = build_label_studio_results(
        PreferenceAnswer(better=Position.FIRST), pair(), swapped=swapped
    )
    assert left["value"] == {"choices": ["right" if swapped else "left"]}
    found = parse_judgement(AnnotationInterface.PREFERENCE, [left], pair(), swapped=not swapped)
    assert found == PreferenceAnswer(better=Position.SECOND)


@given(json_values)
def test_any_json_gives_a_value_or_a_reason(document: object) -> None:
    for interface in AnnotationInterface:
        found = parse_judgement(interface, document, task_for(interface), swapped=False)
        assert isinstance(found, SubmissionQuarantine)


def _mutated(draw: st.DrawFn, value: object) -> object:
    """`value` with one place of it replaced by any JSON."""
    if isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        return value | {key: _mutated(draw, value[key])}
    if isinstance(value, list) and value and draw(st.integers(0, 3)):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], _mutated(draw, value[place]), *value[place + 1 :]]
    return draw(json_values)


@st.composite
def nearly_right(draw: st.DrawFn) -> object:
    return _mutated(draw, build_label_studio_results(draw(traced(COPY)), TASK, swapped=False))


@settings(max_examples=300)
@given(nearly_right())
def test_a_damaged_annotation_gives_a_value_that_can_be_stored_or_a_reason(results: object) -> None:
    found = read(results)
    if not isinstance(found, SubmissionQuarantine):
        assert VALUES.validate_json(VALUES.dump_json(found)) == found


def _same_boxes(one: Trace, other: Trace, copy: AnnotatorClipCopy) -> None:
    keys, back = convert_trace_to_key_frames(one, copy), convert_trace_to_key_frames(other, copy)
    for frame in range(1, copy.n_frames + 1):
        left, right = box_on(keys, frame), box_on(back, frame)
        assert (left is None) is (right is None), frame
        if left is not None and right is not None:
            sides = ("x0", "y0", "x1", "y1")
            assert all(abs(getattr(left, s) - getattr(right, s)) < 1e-9 for s in sides)


@given(st.data())
def test_traces_are_read_back_to_the_frame(data: st.DataObject) -> None:
    copy = data.draw(copies)
    task = AnnotationTask(names=("one",), copies=(copy,))
    value = data.draw(traced(copy))
    sent = json.loads(json.dumps(build_label_studio_results(value, task, swapped=False)))
    back = parse_judgement(AnnotationInterface.TRACE, sent, task, swapped=False)
    assert isinstance(back, TraceAnswer)
    assert back.label is value.label
    for trace, found in zip(value.traces, back.traces, strict=True):
        assert found.span == trace.span
        assert found.categories == trace.categories
        assert found.explanation == trace.explanation
        _same_boxes(trace, found, copy)


def test_every_control_of_a_screen_is_known_to_its_reader() -> None:
    names = {interface: set(get_screen_controls(interface)) for interface in AnnotationInterface}
    assert names[AnnotationInterface.TRACE] == {"box", "verdict", "category", "explanation"}
    assert names[AnnotationInterface.REALISM] == {
        "discard",
        "score",
        "problem",
        "adherence",
        "family",
    }
    assert get_screen_controls(AnnotationInterface.TRACE)["category"].words == set(Category)


SPAN = TimeSpan(0, 500_000)
UNSAYABLE = {
    "a trace without a box": TraceAnswer(
        traces=(Trace(span=SPAN, categories=frozenset({Category.OTHER})),), label=Label.GENERATED
    ),
    "a trace without a category": TraceAnswer(
        traces=(Trace(span=SPAN, track=(BoxAt(0, Box(0, 0, 1, 1)),)),), label=Label.GENERATED
    ),
    "generated, and nothing marked": TraceAnswer(traces=(), label=Label.GENERATED),
    "a rating without reasons": RatingAnswer(rating=Rating(score=3)),
}


@pytest.mark.parametrize("name", UNSAYABLE)
def test_what_no_screen_would_take_is_not_written(name: str) -> None:
    with pytest.raises(InvalidValueError):
        build_label_studio_results(UNSAYABLE[name], TASK, swapped=False)


LOCATE = AnnotationInterface.LOCATE


def segment(start: object, end: object, region: str = "s", **value: object) -> list[dict[str, Any]]:
    """A segment on the timeline, of the category `other`."""
    place = {"ranges": [{"start": start, "end": end}], "timelinelabels": ["generated"]} | value
    own = {"id": region, "from_name": "segment", "to_name": "video", "type": "timelinelabels"}
    return [{**own, "value": place}, said("category", "other", region=region)]


def located(*regions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A clip with these regions, marked as having generated parts."""
    return [said("verdict", "traces", region="v"), *(result for one in regions for result in one)]


def test_a_segment_on_the_timeline_is_a_trace_without_a_box() -> None:
    results = [*located(segment(3, 20)), written("explanation", ["The sky flows."], region="s")]
    found = read(results, LOCATE)
    span = TimeSpan(COPY.at_us(2), COPY.at_us(20))
    trace = Trace(span=span, categories=frozenset({Category.OTHER}), explanation="The sky flows.")
    assert found == TraceAnswer(traces=(trace,), label=Label.GENERATED)


def test_a_box_belongs_to_the_segment_in_which_it_begins() -> None:
    mark = [box(entry(5), entry(30, x=20, enabled=False)), said("category", "object-merging")]
    found = read(located(segment(40, 50, region="t"), segment(3, 20), mark), LOCATE)
    assert isinstance(found, TraceAnswer)
    first, second = found.traces
    assert [at.at_us for at in first.track] == [COPY.at_us(4)]
    assert first.categories == {Category.OTHER, Category.OBJECT_MERGING}
    assert (first.span, second.track) == (TimeSpan(COPY.at_us(2), COPY.at_us(20)), ())


@pytest.mark.parametrize(
    ("results", "why"),
    [
        (located(segment(0, 5)), QuarantineReason.OUT_OF_RANGE),
        (located(segment(9, 5)), QuarantineReason.OUT_OF_RANGE),
        (located(segment(1, 62)), QuarantineReason.OUT_OF_RANGE),
        (located(segment(1.5, 5)), QuarantineReason.MALFORMED),
        (located(segment("1", 5)), QuarantineReason.MALFORMED),
        (located(segment(1, 5, ranges=[])), QuarantineReason.MALFORMED),
        (located(segment(1, 5, timelinelabels=["cow"])), QuarantineReason.UNKNOWN_WORD),
        (located(segment(1, 5)[:1]), QuarantineReason.MISSING),
        (located(), QuarantineReason.CONTRADICTORY),
        (
            located(segment(1, 5), [box(entry(9)), said("category", "other")]),
            QuarantineReason.CONTRADICTORY,
        ),
    ],
)
def test_a_segment_that_cannot_be_is_quarantined(
    results: list[dict[str, Any]], why: QuarantineReason
) -> None:
    assert reason(results, LOCATE) is why


@given(copies.flatmap(lambda copy: st.tuples(st.just(copy), traced(copy))))
def test_segments_read_back_as_they_were_written(
    drawn: tuple[AnnotatorClipCopy, TraceAnswer],
) -> None:
    copy, answer = drawn
    task = AnnotationTask(names=("one",), copies=(copy,))
    segments = tuple(replace(trace, track=()) for trace in answer.traces)
    value = replace(answer, traces=tuple(sorted(segments, key=lambda trace: trace.span)))
    sent = build_label_studio_results(value, task, swapped=False, interface=LOCATE)
    back = parse_judgement(LOCATE, json.loads(json.dumps(sent)), task, swapped=False)
    assert isinstance(back, TraceAnswer)
    assert [trace.span for trace in back.traces] == [trace.span for trace in value.traces]
