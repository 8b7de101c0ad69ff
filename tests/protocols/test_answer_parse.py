"""`realism`, `reality` and `preference`: one score, label or position in a text."""

import pytest

from unreel.core.judgement import ErrorFamily, Label
from unreel.core.verdict import Position, Unparsed, UnparsedReason
from unreel.protocols.preference.parser import parse_preference_answer as parse_preference
from unreel.protocols.protocol import AnswerContext, Mode
from unreel.protocols.realism.parser import parse_realism_answer as parse_realism
from unreel.protocols.reality.parser import parse_reality_answer as parse_reality

MISSING = UnparsedReason.MISSING
MALFORMED = UnparsedReason.MALFORMED
AMBIGUOUS = UnparsedReason.AMBIGUOUS
OUT_OF_RANGE = UnparsedReason.OUT_OF_RANGE
REAL, FAKE = Label.REAL, Label.GENERATED
FIRST, SECOND = Position.FIRST, Position.SECOND


def outcome(part: object) -> object:
    return part.reason if isinstance(part, Unparsed) else part


def reading(mode: Mode = "strict", prompt: str = "paper") -> AnswerContext:
    return AnswerContext(mode=mode, prompt=prompt)


@pytest.mark.parametrize(
    ("text", "strict", "lenient"),
    [
        ("<think>fine</think><answer>1</answer>", REAL, REAL),
        ("<think>bad<think><answer>0 </answer>.", FAKE, FAKE),  # as the paper's own example has it
        ("<answer>\n1\n</answer>", REAL, REAL),
        ("<answer>1</answer> no: <answer>0</answer>", FAKE, FAKE),  # the last one
        ("<answer>1</answer> The motion holds.", REAL, REAL),
        ("<answer>1</answer>\n\nOn second thought, I change it to 0.", AMBIGUOUS, AMBIGUOUS),
        ("<answer>0</answer> as in <answer>answer here </answer>", FAKE, FAKE),
        ("<answer>answer here </answer>", MALFORMED, MALFORMED),
        ("<answer>2</answer>", OUT_OF_RANGE, OUT_OF_RANGE),
        ("<answer>0.5</answer>", OUT_OF_RANGE, OUT_OF_RANGE),
        ("<answer>01</answer>", OUT_OF_RANGE, OUT_OF_RANGE),
        ("<answer>0 or 1</answer>", MALFORMED, AMBIGUOUS),
        ("<answer></answer>", MISSING, MISSING),
        ("<answer>Real</answer>", MALFORMED, REAL),
        ('<answer>"0"</answer>', MALFORMED, FAKE),
        ("<answer>1 (real)</answer>", MALFORMED, REAL),
        ("<answer>1 (fake)</answer>", MALFORMED, AMBIGUOUS),
        ("<answer>Answer: 0.</answer>", MALFORMED, FAKE),
        ("<Answer>0</Answer>", MISSING, FAKE),
        ("<think>x</think><answer>0", MISSING, FAKE),
        ("<answer>0<answer>", MISSING, FAKE),
        ("1", MISSING, REAL),
        ("<think>x</think>\nfake", MISSING, FAKE),
        ("The video is fake", MISSING, FAKE),
        ("Error code: 401", MISSING, MISSING),
        ("I'm sorry, I can't watch videos.", MISSING, MISSING),
        ("", MISSING, MISSING),
    ],
)
def test_reality(text: str, strict: object, lenient: object) -> None:
    assert outcome(parse_reality(text, reading()).label) == strict
    assert outcome(parse_reality(text, reading("lenient")).label) == lenient


@pytest.mark.parametrize(
    ("text", "strict", "lenient"),
    [
        ("<answer>0</answer><confidence>85</confidence>", (FAKE, 85), (FAKE, 85)),
        ("<confidence>62.5</confidence>\n<answer>1</answer>", (REAL, 62.5), (REAL, 62.5)),
        ("<answer>1</answer><confidence>0</confidence>", (REAL, 0), (REAL, 0)),
        ("<answer>1</answer><confidence>100 </confidence>", (REAL, 100), (REAL, 100)),
        ("<answer>1</answer>", (REAL, MISSING), (REAL, MISSING)),
        ("<confidence>90</confidence>", (MISSING, 90), (MISSING, 90)),
        ("<answer>0</answer><confidence>85%</confidence>", (FAKE, MALFORMED), (FAKE, 85)),
        ("<answer>0</answer><confidence>85/100</confidence>", (FAKE, MALFORMED), (FAKE, 85)),
        ("<answer>0</answer><confidence>8/10</confidence>", (FAKE, MALFORMED), (FAKE, MALFORMED)),
        ("<answer>0</answer><confidence>high</confidence>", (FAKE, MALFORMED), (FAKE, MALFORMED)),
        ("<answer>0</answer><confidence>101</confidence>", (FAKE, OUT_OF_RANGE), (FAKE, OUT_OF_RANGE)),
        ("<answer>0</answer><confidence>-5</confidence>", (FAKE, OUT_OF_RANGE), (FAKE, OUT_OF_RANGE)),
        ("<answer>0</answer><confidence>0.9</confidence>", (FAKE, AMBIGUOUS), (FAKE, AMBIGUOUS)),
        ("<answer>0</answer><confidence>1</confidence>", (FAKE, AMBIGUOUS), (FAKE, AMBIGUOUS)),
        ("<answer>0</answer> Confidence: 70", (FAKE, MISSING), (FAKE, 70)),
        ("Answer: 0. Confidence: 70", (MISSING, MISSING), (FAKE, 70)),
        ("<answer>0</answer> Confidence: 70, or confidence 20", (FAKE, MISSING), (FAKE, AMBIGUOUS)),
        ('{"answer": 1, "confidence": 95}', (MISSING, MISSING), (REAL, 95)),
        ("<answer>1</answer><confidence>95", (REAL, MISSING), (REAL, 95)),
        ("<think><confidence>10</confidence></think><answer>1</answer>", (REAL, MISSING), (REAL, MISSING)),
        ("I'm sorry, I can't watch videos.", (MISSING, MISSING), (MISSING, MISSING)),
    ],
)  # fmt: skip
def test_reality_with_a_confidence(text: str, strict: object, lenient: object) -> None:
    for mode, expected in (("strict", strict), ("lenient", lenient)):
        said = parse_reality(text, reading(mode, "confidence"))
        assert (outcome(said.label), outcome(said.confidence)) == expected


HUMAN, OBJECTS = ErrorFamily.HUMAN_STATES, ErrorFamily.OBJECT_STATES
BOTH = ErrorFamily.INTERACTIONS


@pytest.mark.parametrize(
    ("text", "strict", "lenient"),
    [
        ("<family>human-states</family><answer>3</answer>", (3, HUMAN), (3, HUMAN)),
        ("<answer>5</answer><family>none</family>", (5, "none"), (5, "none")),
        ("<family>Object states</family><answer>2</answer>", (2, MALFORMED), (2, OBJECTS)),
        ("<family>human-object interaction.</family><answer>2</answer>", (2, MALFORMED), (2, BOTH)),
        ("<family>human-states, object-states</family><answer>2</answer>", (2, MALFORMED), (2, MALFORMED)),
        ("<family>not human-states</family><answer>2</answer>", (2, MALFORMED), (2, MALFORMED)),
        ("<answer>2</answer>", (2, MISSING), (2, MISSING)),
        ("<think><family>human-states</family></think><answer>2</answer>", (2, MISSING), (2, MISSING)),
    ],
)  # fmt: skip
def test_realism_with_a_family_of_errors(text: str, strict: object, lenient: object) -> None:
    for mode, expected in (("strict", strict), ("lenient", lenient)):
        said = parse_realism(text, reading(mode, "families"))
        assert (outcome(said.score), outcome(said.family)) == expected
    assert parse_realism(text, reading()).family is None


@pytest.mark.parametrize(
    ("text", "strict", "lenient"),
    [
        ("<answer>3</answer>", 3, 3),
        ("<answer>3</answer> Wait, make that 4.", AMBIGUOUS, AMBIGUOUS),
        ("<answer>1</answer><answer> 5 </answer>", 5, 5),
        ("<answer>0</answer>", OUT_OF_RANGE, OUT_OF_RANGE),
        ("<answer>6</answer>", OUT_OF_RANGE, OUT_OF_RANGE),
        ("<answer>-3</answer>", OUT_OF_RANGE, OUT_OF_RANGE),
        ("<answer>3.5</answer>", MALFORMED, MALFORMED),  # never rounded
        ("<answer>three</answer>", MALFORMED, 3),
        ("<answer>3(Normal)</answer>", MALFORMED, 3),
        ("<answer>3(Good)</answer>", MALFORMED, AMBIGUOUS),
        ("<answer>4 - good.</answer>", MALFORMED, 4),
        ("<answer>4/5</answer>", MALFORMED, 4),
        ("<answer>Score: 2</answer>", MALFORMED, 2),
        ("<answer>Poor</answer>", MALFORMED, 2),
        ("<answer>4", MISSING, 4),
        ("<think>fine</think> 4", MISSING, 4),
        ("4 of the 5 people look odd", MISSING, MISSING),
        ("error 3", MISSING, MISSING),
        ("", MISSING, MISSING),
    ],
)
def test_realism_scores(text: str, strict: object, lenient: object) -> None:
    assert outcome(parse_realism(text, reading()).score) == strict
    assert outcome(parse_realism(text, reading("lenient")).score) == lenient


@pytest.mark.parametrize(
    ("text", "strict", "lenient"),
    [
        ("<answer>Bad</answer>", 1, 1),
        ("<answer>Excellent</answer>", 5, 5),
        ("<answer>excellent</answer>", MALFORMED, 5),
        ("<answer>3</answer>", MALFORMED, 3),
        ("<answer>9</answer>", OUT_OF_RANGE, OUT_OF_RANGE),
        ("<answer>Fair</answer>", MALFORMED, MALFORMED),
    ],
)
def test_realism_terms(text: str, strict: object, lenient: object) -> None:
    assert outcome(parse_realism(text, reading(prompt="score-only-verbal")).score) == strict
    lenient_reading = reading("lenient", "score-only-verbal")
    assert outcome(parse_realism(text, lenient_reading).score) == lenient


def test_realism_reasons_end_where_the_next_begins() -> None:
    verdict = parse_realism(
        "<think>Problem Description: The cup floats.\nStandard Adherence: Conspicuous anomalies.</think>\n"
        "<answer>2</answer>",
        reading(),
    )
    assert verdict.problem == "The cup floats."
    assert verdict.adherence == "Conspicuous anomalies."
    assert verdict.score == 2


def test_realism_reasons_of_the_last_draft_count() -> None:
    text = (
        "Problem Description: a Standard Adherence: b "
        "Problem Description: c Standard Adherence: d<answer>1</answer>"
    )
    verdict = parse_realism(text, reading())
    assert (verdict.problem, verdict.adherence) == ("c", "d")


def test_realism_reasons_without_headings_or_words_are_missing() -> None:
    for text in ("<think>It is fine.</think>", "Problem Description:</think>", ""):
        verdict = parse_realism(text, reading("lenient"))
        assert outcome(verdict.problem) == MISSING
        assert outcome(verdict.adherence) == MISSING


def test_lenient_takes_headings_in_bold() -> None:
    text = "**Problem description:** The cup floats.\n### standard  adherence: Poor."
    assert outcome(parse_realism(text, reading()).problem) == MISSING
    verdict = parse_realism(text, reading("lenient"))
    assert verdict.problem == "The cup floats."
    assert verdict.adherence == "Poor."


@pytest.mark.parametrize(
    ("text", "strict", "lenient"),
    [
        ("1", FIRST, FIRST),
        (' "2". ', SECOND, SECOND),
        ("<think>1 or 2?</think>\n2", SECOND, SECOND),
        ("Video 1", MALFORMED, FIRST),
        ("The second video is real.", MALFORMED, SECOND),
        ("first", MALFORMED, FIRST),
        ("The second clip seems to be real", MALFORMED, SECOND),
        ("<answer>1</answer>", MALFORMED, FIRST),
        ("<answer>2</answer> then <answer>1</answer>", MALFORMED, FIRST),
        ("1. Its motion is smooth.", MALFORMED, FIRST),
        ("2\nBecause of the light.", MALFORMED, SECOND),
        ("1 - the light is right", MALFORMED, FIRST),
        ("1. The first is odd. 2. The second is odd.", MALFORMED, AMBIGUOUS),
        ("12", MALFORMED, MALFORMED),
        ("0", MALFORMED, MALFORMED),
        ("2 validation errors for ChatRequest", MALFORMED, MALFORMED),
        ("1 error occurred", MALFORMED, MALFORMED),
        ("The first video is not real", MALFORMED, SECOND),
        ("I'm sorry, I cannot compare 1 and 2", MALFORMED, MALFORMED),
        ("both", MALFORMED, MALFORMED),
        ("", MISSING, MISSING),
    ],
)
def test_preference(text: str, strict: object, lenient: object) -> None:
    assert outcome(parse_preference(text, reading()).real) == strict
    assert outcome(parse_preference(text, reading("lenient")).real) == lenient


NEITHER_OR_BOTH = [
    "Neither the first nor the second is real.",
    "Neither video 1 nor video 2 is real.",
    "Neither the first nor the second clip appears to be a genuine recording.",
    "Neither the first nor the second is fake.",
    "Neither 1 nor 2 is real.",
    "Both the first and the second are fake.",
    "The first is fake, and so is the second.",
    "The first is not real, and neither is the second.",
    "The first is not real, nor is the second.",
    "The first video is not real. The second is not real either.",
    "The first is as fake as the second.",
    "The first looks no more real than the second.",
    "The first and the second are equally fake.",
    "I can't say whether the first or the second is real.",
    "Either the first or the second is real.",
    "Weder das erste noch das zweite Video ist echt.",
    "Ni le premier ni le deuxième n'est réel.",
    "Ni el primero ni el segundo es real.",
    "The first is real, and so is the second.",
]


@pytest.mark.parametrize("text", NEITHER_OR_BOTH)
def test_a_sentence_that_says_the_same_of_both_clips_chooses_none(text: str) -> None:
    assert len(NEITHER_OR_BOTH) == 19
    assert isinstance(parse_preference(text, reading("lenient")).real, Unparsed)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ('{"real": 0, "fake": 1}', FAKE),
        ('{"real": 1, "fake": 0}', REAL),
        ('{"real": 1, "fake": 1}', AMBIGUOUS),
        ('{"fake": 1}', AMBIGUOUS),
    ],
)
def test_fields_of_both_sides_tell_the_label_where_their_digits_are_contrary(
    text: str, label: object
) -> None:
    assert outcome(parse_reality(text, reading("lenient")).label) == label


@pytest.mark.parametrize(
    ("text", "strict"),
    [
        ("<think>the second melts</think><answer>1</answer>", FIRST),
        ("<answer>1</answer> no: <answer>2 </answer>", SECOND),
        ("<answer>0</answer>", MALFORMED),  # asked for in print, and names neither
        ("1", MISSING),
    ],
)
def test_preference_in_tags_where_the_prompt_asks_for_them(text: str, strict: object) -> None:
    for prompt in ("reasoning", "as-printed", "as-printed-direct"):
        assert outcome(parse_preference(text, reading(prompt=prompt)).real) == strict
