"""Segments of an answer, as asked for and as models write them."""

import pytest

from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace
from unreel.core.verdict import LocatedSegment, Unparsed, UnparsedReason
from unreel.protocols.box_space import BoxSpace
from unreel.protocols.locate.parser import MAX_SEGMENTS
from unreel.protocols.locate.verdict_texts import UNIT, format_segments_json
from unreel.protocols.protocol import AnswerContext, get_protocol

SPACE = BoxSpace("pixel", 100, 100)
BOX = Box(0.1, 0.2, 0.5, 0.6)
FULL = LocatedSegment(
    Trace(
        span=TimeSpan(1_000_000, 2_500_000),
        track=(BoxAt(1_000_000, BOX), BoxAt(2_000_000, BOX)),
        categories=frozenset({Category.OBJECT_DISTORTION}),
        explanation="The hand melts.",
    ),
    0.7,
)
BARE = LocatedSegment(Trace(span=TimeSpan(1_000_000, 2_500_000)))


def parsed(text: str, mode: str = "strict", prompt: str = "paper", space: BoxSpace = SPACE):
    reading = AnswerContext(mode=mode, prompt=prompt, space=space)
    return get_protocol("locate").parse(text, reading).segments


def reason(text: str, mode: str = "strict", prompt: str = "paper") -> UnparsedReason:
    found = parsed(text, mode, prompt)
    assert isinstance(found, Unparsed), found
    return found.reason


@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_a_list_as_asked_for_is_read_completely(mode: str) -> None:
    assert parsed(format_segments_json([FULL, BARE]), mode, space=UNIT) == (FULL, BARE)
    assert parsed("<think>Is [1, 2] fake?</think> []", mode) == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", UnparsedReason.MISSING),
        ("REAL", UnparsedReason.MALFORMED),
        ("{}", UnparsedReason.MALFORMED),
        ('[{"start": 1}]', UnparsedReason.MISSING),
        ('[{"start": 1, "end": "2"}]', UnparsedReason.MALFORMED),
        ('[{"start": true, "end": 2}]', UnparsedReason.MALFORMED),
        ('[{"start": 2, "end": 1}]', UnparsedReason.OUT_OF_RANGE),
        ('[{"start": 1, "end": 1.0000001}]', UnparsedReason.OUT_OF_RANGE),
        ('[{"start": -1, "end": 1}]', UnparsedReason.OUT_OF_RANGE),
        ('[{"start": NaN, "end": 1}]', UnparsedReason.MALFORMED),
        ('[{"start": 0, "end": 1e300}]', UnparsedReason.OUT_OF_RANGE),
        ('[{"start": 0, "end": 1e999}]', UnparsedReason.OUT_OF_RANGE),
        (f'[{{"start": 0, "end": {"9" * 5000}}}]', UnparsedReason.MALFORMED),
        ('[{"start": 0, "end": 1, "confidence": 70}]', UnparsedReason.OUT_OF_RANGE),
        ('[{"start": 0, "end": 1, "category": "strange"}]', UnparsedReason.OUT_OF_RANGE),
        ('[{"start": 0, "end": 1, "reason": 3}]', UnparsedReason.MALFORMED),
        ('[{"start": 0, "end": 1, "score": 0.5}]', UnparsedReason.MALFORMED),
        ('[{"start": 0, "end": 1, "boxes": [[1, 2, 3, 4]]}]', UnparsedReason.MALFORMED),
        (
            '[{"start": 0, "end": 1, "boxes": [{"time": 5, "box": [1, 2, 3, 4]}]}]',
            UnparsedReason.OUT_OF_RANGE,
        ),
        (
            '[{"start": 0, "end": 1, "boxes": [{"time": 0, "box": [3, 2, 1, 4]}]}]',
            UnparsedReason.OUT_OF_RANGE,
        ),
        (str([[]] * (MAX_SEGMENTS + 1)), UnparsedReason.OUT_OF_RANGE),
        ("[" * 100_000, UnparsedReason.MALFORMED),
        ('[{"start": 0, "end": 1}', UnparsedReason.MALFORMED),
    ],
)
def test_strict_reads_nothing_of_an_answer_with_a_wrong_part(
    text: str, expected: UnparsedReason
) -> None:
    assert reason(text) is expected


@pytest.mark.parametrize(
    "text",
    [
        'Here it is:\n```json\n[{"start": 1, "end": 2.5}]\n```\nI looked at each frame.',
        '{"segments": [{"start_time": "0:01", "end_time": "2.5 s"}]}',
        '{"from": 1, "to": 2.5}',
        "[[1, 2.5]]",
        '[{"start": 1, "end": 2.5, "confidence": 300, "category": "strange"}]',
        '[{"start": 3, "end": 2}, {"start": 1, "end": 2.5}]',
        'Frames [] look odd: [{"start": 1, "end": 2.5}]',
        '[{"start": 1, "end": 2.5, "boxes": [{"time": 9, "box": [1, 2, 3, 4]}]}]',
    ],
)
def test_lenient_reads_usual_slips(text: str) -> None:
    assert parsed(text, "lenient") == (BARE,)
    assert isinstance(parsed(text), Unparsed)


def test_lenient_reads_a_percentage_and_a_bare_box() -> None:
    (found,) = parsed(
        '[{"start": 1, "end": 2, "bbox": [10, 20, 50, 60], "score": "85%"}]', "lenient"
    )
    assert found.confidence == 0.85
    assert found.trace.track == (BoxAt(1_000_000, BOX),)


TAGS = "<type>Object Distortion</type> in <t>[1, 2.5]</t> at <bbox>[10, 20, 50, 60]</bbox>"


@pytest.mark.parametrize(
    "text", [f"{TAGS}\n<answer>Fake</answer>", f"<think>See {TAGS}.</think><answer>Fake</answer>"]
)
def test_the_tags_of_vif_cot_are_read_in_thoughts_too(text: str) -> None:
    (found,) = parsed(text, prompt="tagged")
    assert found.trace.span == TimeSpan(1_000_000, 2_500_000)
    assert found.trace.track == (BoxAt(1_000_000, BOX),)
    assert found.trace.categories == {Category.OBJECT_DISTORTION}
    assert parsed(text, "lenient") == (found,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TAGS, UnparsedReason.MISSING),
        ("<answer>Fake</answer>", UnparsedReason.MISSING),
        ("<answer>perhaps</answer>", UnparsedReason.MALFORMED),
        ("<answer>Real</answer><answer>Fake</answer>", UnparsedReason.AMBIGUOUS),
        (f"{TAGS} <type>other</type> later <answer>Fake</answer>", UnparsedReason.MALFORMED),
        ("<type>other</type> in <t>[2, 1]</t> <answer>Fake</answer>", UnparsedReason.OUT_OF_RANGE),
        ("<type>odd</type> in <t>[1, 2]</t> <answer>Fake</answer>", UnparsedReason.OUT_OF_RANGE),
    ],
)
def test_strict_tags_need_a_label_and_right_parts(text: str, expected: UnparsedReason) -> None:
    assert reason(text, prompt="tagged") is expected


def test_a_training_answer_reads_back_in_its_space() -> None:
    wording = get_protocol("locate").wording
    truth = get_protocol("locate").truths.kind(traces=(FULL.trace,), duration_us=3_000_000)
    (read,) = parsed(wording.teach(truth, "paper", SPACE))
    assert read.trace.span == FULL.trace.span
    assert read.trace.track[0].box.x1 == pytest.approx(BOX.x1)
    with pytest.raises(InvalidValueError, match="Declare their space"):
        wording.teach(truth, "paper", None)
