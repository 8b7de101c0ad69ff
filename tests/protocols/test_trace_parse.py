import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Label
from unreel.core.verdict import TraceVerdict, Unparsed, UnparsedReason
from unreel.protocols.box_space import BoxSpace
from unreel.protocols.protocol import AnswerContext, Mode
from unreel.protocols.trace.parser import parse_trace_answer

FRAME = BoxSpace("pixel", 100, 100)
MISSING = UnparsedReason.MISSING
MALFORMED = UnparsedReason.MALFORMED
AMBIGUOUS = UnparsedReason.AMBIGUOUS
OUT_OF_RANGE = UnparsedReason.OUT_OF_RANGE


def read(text: str, mode: Mode = "strict", prompt: str = "paper") -> TraceVerdict:
    return parse_trace_answer(text, AnswerContext(mode=mode, prompt=prompt, space=FRAME))


def outcome(part: object) -> object:
    return part.reason if isinstance(part, Unparsed) else part


def test_an_answer_as_the_paper_asks_for_it() -> None:
    verdict = read(
        "FAKE\n<coordinates>[10, 20, 50, 60]</coordinates>\n<start_time>2.5</start_time>\n"
        "<explanation>The hand melts into the cup.</explanation>"
    )
    assert verdict == TraceVerdict(
        label=Label.GENERATED,
        box=Box(0.1, 0.2, 0.5, 0.6),
        start_us=2_500_000,
        explanation="The hand melts into the cup.",
    )


def test_an_answer_of_real_holds_nothing_else() -> None:
    verdict = read("REAL")
    assert verdict.label is Label.REAL
    assert [outcome(p) for p in (verdict.box, verdict.start_us, verdict.explanation)] == [
        MISSING
    ] * 3


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("REAL", Label.REAL),
        ("FAKE. The hand looks REAL but is not.", Label.GENERATED),  # the opening word decides
        ("'FAKE'", Label.GENERATED),
        ("**REAL**\nNothing is FAKE here.", Label.REAL),
        ("The video is FAKE.", Label.GENERATED),
        ("FAKE FAKE", Label.GENERATED),
        ("<think>REAL? FAKE?</think>\n\nREAL", Label.REAL),
        ("<think>It seems FAKE", MISSING),
        ("I think it is REAL or FAKE", AMBIGUOUS),
        ("REAL or FAKE? Hard to say.", AMBIGUOUS),
        ("'REAL'/'FAKE'", AMBIGUOUS),
        ("REAL, REAL", Label.REAL),
        ("If you think it is real, reply 'REAL'. Otherwise, reply 'FAKE'", AMBIGUOUS),
        ("The video is not REAL.", AMBIGUOUS),
        ("It isn't FAKE", AMBIGUOUS),
        ("I'm sorry, I can't tell whether the video is FAKE.", MISSING),
        ("Error code: 400 - the file FAKE is too large", MISSING),
        ("UNREAL", MISSING),
        ("REALLY", MISSING),
        ("A FAKE-looking hand", MISSING),
        ("AI-FAKE", MISSING),
        ("Fake", MISSING),
        ("FAKÉ", MISSING),
        ("", MISSING),
    ],
)
def test_the_opening_word_is_the_label_or_else_the_only_one(text: str, label: object) -> None:
    assert outcome(read(text).label) == label


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Fake.", Label.GENERATED),
        ("The video is real", Label.REAL),
        ("fake, because the hand is not real", Label.GENERATED),
        ("This is fake. <explanation>No real hand bends so.</explanation>", Label.GENERATED),
        ("This is fake. The reason is because no real hand bends so.", Label.GENERATED),
        ("real or fake", AMBIGUOUS),
        ("It is not real.", Label.GENERATED),
        ("Real people walk", MISSING),  # says nothing of the clip
        ("The scene shows real hands moving", MISSING),
        ("physics of the real-time kind.", MISSING),
        ("I cannot determine if it is fake.", MISSING),
    ],
)
def test_lenient_takes_small_letters_that_end_a_clause(text: str, label: object) -> None:
    assert outcome(read(text, "lenient").label) == label
    assert isinstance(read(text).label, Unparsed)


@pytest.mark.parametrize(
    ("content", "strict", "lenient"),
    [
        ("[10, 20, 50, 60]", Box(0.1, 0.2, 0.5, 0.6), None),
        (" [ 10,20 , 50 ,60.0 ] ", Box(0.1, 0.2, 0.5, 0.6), None),
        ("[-10, 20, 150, 60]", Box(0, 0.2, 1, 0.6), None),  # clipped
        ("[50, 20, 10, 60]", OUT_OF_RANGE, OUT_OF_RANGE),  # reversed
        ("[10, 20, 10, 60]", OUT_OF_RANGE, OUT_OF_RANGE),  # no area
        ("[200, 200, 300, 300]", OUT_OF_RANGE, OUT_OF_RANGE),  # outside
        ("10, 20, 50, 60", MALFORMED, Box(0.1, 0.2, 0.5, 0.6)),
        ("(10, 20, 50, 60)", MALFORMED, Box(0.1, 0.2, 0.5, 0.6)),
        ("x0=10, y0=20, x1=50, y1=60", MALFORMED, Box(0.1, 0.2, 0.5, 0.6)),
        ("[[10, 20], [50, 60]]", MALFORMED, Box(0.1, 0.2, 0.5, 0.6)),
        ("[10, 20, 50]", MALFORMED, MALFORMED),
        ("[10, 20, 50, 60, 70]", MALFORMED, MALFORMED),
        ("[10, 20, 50, 60], [1, 2, 3, 4]", MALFORMED, Box(0.1, 0.2, 0.5, 0.6)),  # the first
        ("[10%, 20%, 50%, 60%]", MALFORMED, Box(0.1, 0.2, 0.5, 0.6)),  # of the frame
        ("[1e1, 20, 50, 60]", MALFORMED, MALFORMED),
        ("[NaN, 20, 50, 60]", MALFORMED, MALFORMED),
        ("[1234567890123, 0, 1, 1]", MALFORMED, MALFORMED),
        ("[x0, y0, x1, y1]", MALFORMED, MALFORMED),
        ("[\u0661, \u0662, \u0663, \u0664]", MALFORMED, Box(0.01, 0.02, 0.03, 0.04)),
        ("left half", MALFORMED, MALFORMED),
        ("9" * 300, MALFORMED, MALFORMED),
        (" ", MISSING, MISSING),
    ],
)
def test_boxes(content: str, strict: object, lenient: object) -> None:
    text = f"FAKE <coordinates>{content}</coordinates>"
    assert outcome(read(text).box) == strict
    assert outcome(read(text, "lenient").box) == (strict if lenient is None else lenient)


@pytest.mark.parametrize(
    ("content", "strict", "lenient"),
    [
        ("2", 2_000_000, None),
        ("2.5", 2_500_000, None),
        ("0", 0, None),
        ("99999", 99_999_000_000, None),  # past the end of any clip: kept as said
        ("-1", OUT_OF_RANGE, OUT_OF_RANGE),
        ("2.5s", MALFORMED, 2_500_000),
        ("2.5 seconds", MALFORMED, 2_500_000),
        ("3 Sec.", MALFORMED, 3_000_000),
        ("0:02", MALFORMED, 2_000_000),
        ("1:02.5", MALFORMED, 62_500_000),
        ("00:00:02.5", MALFORMED, 2_500_000),
        ("1:01:01", MALFORMED, 3_661_000_000),
        ("2-4", MALFORMED, 2_000_000),
        ("2s - 4s", MALFORMED, 2_000_000),
        ("0:02 to 0:04", MALFORMED, 2_000_000),
        ("0:75", MALFORMED, MALFORMED),
        ("1:75:00", MALFORMED, MALFORMED),
        ("500ms", MALFORMED, 500_000),
        ("frame 20", MALFORMED, MALFORMED),
        ("2,5", MALFORMED, 2_500_000),
        ("nan", MALFORMED, MALFORMED),
        ("inf", MALFORMED, MALFORMED),
        ("1e9", MALFORMED, MALFORMED),
        ("the beginning", MALFORMED, MALFORMED),
        ("1" * 13, MALFORMED, MALFORMED),
        ("", MISSING, MISSING),
    ],
)
def test_times(content: str, strict: object, lenient: object) -> None:
    text = f"FAKE <start_time>{content}</start_time>"
    assert outcome(read(text).start_us) == strict
    assert outcome(read(text, "lenient").start_us) == (strict if lenient is None else lenient)


def test_a_part_given_twice_is_ambiguous_unless_it_says_the_same() -> None:
    one, two = "<start_time>1</start_time>", "<start_time>2</start_time>"
    assert outcome(read(one + two).start_us) == AMBIGUOUS
    assert read(one + one).start_us == 1_000_000
    assert read(one + two, "lenient").start_us == 1_000_000


def test_lenient_reads_an_answer_that_was_cut_off() -> None:
    text = "FAKE <coordinates>[10, 20, 50, 60]</coordinates><start_time>2</start_time><explanation>The ha"
    assert outcome(read(text).explanation) == MISSING
    assert read(text, "lenient").explanation == "The ha"


TRAINED = (
    "FAKE. The video is AI-generated. The unnatural part is at [10, 20, 50, 60] starting 2.5 seconds. "
    "The reason is because the hand melts. It flickers."
)


def test_the_trained_sentences_are_read_where_they_were_asked_for() -> None:
    expected = TraceVerdict(
        label=Label.GENERATED,
        box=Box(0.1, 0.2, 0.5, 0.6),
        start_us=2_500_000,
        explanation="the hand melts. It flickers.",
    )
    assert read(TRAINED, prompt="fine-tuning") == expected
    assert outcome(read(TRAINED).box) == MISSING  # tags were asked for
    assert read(TRAINED, "lenient") == expected


@pytest.mark.parametrize(
    ("sentence", "start_us"),
    [
        ("the unnatural parts are at (10, 20, 50, 60), starting at 2.5s. More.", 2_500_000),
        ("Unnatural part is [10, 20, 50, 60] starting from 0:02", 2_000_000),
        ("unnatural part is at [10, 20, 50, 60] starting 500 ms.", 500_000),
    ],
)
def test_lenient_sentences(sentence: str, start_us: object) -> None:
    verdict = read(f"FAKE. {sentence}", "lenient", "fine-tuning")
    assert verdict.box == Box(0.1, 0.2, 0.5, 0.6)
    assert outcome(verdict.start_us) == start_us


def test_tags_are_read_leniently_where_sentences_were_asked_for() -> None:
    text = "FAKE <coordinates>[10, 20, 50, 60]</coordinates>"
    assert outcome(read(text, prompt="fine-tuning").box) == MISSING
    assert read(text, "lenient", "fine-tuning").box == Box(0.1, 0.2, 0.5, 0.6)


def test_the_space_must_be_declared() -> None:
    with pytest.raises(InvalidValueError, match="parse_box_space"):
        parse_trace_answer("REAL", AnswerContext())


@given(
    st.tuples(st.integers(0, 98), st.integers(0, 98), st.integers(1, 99), st.integers(1, 99)),
    st.integers(0, 10**9),
    st.sampled_from(["REAL", "FAKE"]),
)
def test_well_formed_answers_are_read_exactly(corners: tuple[int, ...], ms: int, word: str) -> None:
    x0, y0, width, height = corners
    text = (
        f"{word} <coordinates>[{x0}, {y0}, {x0 + width}, {y0 + height}]</coordinates>"
        f"<start_time>{ms // 1000}.{ms % 1000:03d}</start_time><explanation>why {ms}</explanation>"
    )
    verdict = read(text)
    assert verdict.label is (Label.REAL if word == "REAL" else Label.GENERATED)
    assert verdict.box == Box(x0 / 100, y0 / 100, min(1, (x0 + width) / 100), min(1, (y0 + height) / 100))  # fmt: skip
    assert verdict.start_us == ms * 1000
    assert verdict.explanation == f"why {ms}"
