"""The rules by which prose, fields, times, boxes and scores are read, each on many phrases of several languages.

A line of `phrases.txt` holds what is asked, what a person reads (N: nothing) and the phrase.
"""

# ruff: noqa: RUF001  words of other languages

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.judgement import Label
from unreel.core.verdict import Position, Unparsed
from unreel.protocols.box_space import parse_box_space
from unreel.protocols.label_claim_parser import parse_claimed_label
from unreel.protocols.protocol import AnswerContext, get_protocol
from unreel.protocols.trace.box_parser import parse_trace_box
from unreel.protocols.trace.onset_parser import parse_trace_onset

FRAME = parse_box_space("pixel", width=1280, height=720)
LENIENT = AnswerContext(mode="lenient", prompt="paper", space=FRAME)
PHRASES = [
    line.split("|", 2)
    for line in Path(__file__).with_name("phrases.txt").read_text(encoding="utf-8").splitlines()
]
SIDES = {Label.REAL: "R", Label.GENERATED: "G", Position.FIRST: "1", Position.SECOND: "2"}
COVERAGE = {"claim": 0.3, "time": 1, "box": 1, "score": 1, "pair": 0.7}
"""Share of the phrases, which are hard on purpose, that is read; a doubtful claim is left unread."""
OTHER = {"R": Label.GENERATED, "G": Label.REAL}


def shown(kind: str, phrase: str) -> str:
    """What is read, written as the lines of the file write it."""
    match kind:
        case "claim":
            read: object = parse_claimed_label(phrase)
        case "time":
            read = parse_trace_onset(phrase, "lenient")
            return "N" if isinstance(read, Unparsed) else f"{read / 1_000_000:g}"
        case "box":
            box = parse_trace_box(phrase, "lenient", space=FRAME)
            if isinstance(box, Unparsed):
                return "N"
            return " ".join(f"{corner:.0f}" for corner in FRAME.corners(box))
        case "score":
            read = get_protocol("realism").parse(phrase, LENIENT).score
        case _:
            read = get_protocol("preference").parse(phrase, LENIENT).real
    return "N" if isinstance(read, Unparsed) else SIDES.get(read, str(read))  # type: ignore[call-overload]


@pytest.mark.parametrize("kind", ["claim", "time", "box", "score", "pair"])
def test_no_phrase_is_read_otherwise_than_a_person_reads_it(kind: str) -> None:
    lines = [
        (true, phrase.replace("\\n", "\n")) for asked, true, phrase in PHRASES if asked == kind
    ]
    assert len(lines) >= 60
    readings = [(true, shown(kind, phrase), phrase) for true, phrase in lines]
    assert [reading for reading in readings if reading[1] not in {reading[0], "N"}] == []
    n_read = sum(read == true for true, read, _ in readings)
    assert n_read >= COVERAGE[kind] * len(lines), (kind, n_read, len(lines))


WORDS = st.sampled_from(
    [
        *(("R", word) for word in ("REAL", "a genuine recording", "authentic", "real")),
        *(("G", word) for word in ("FAKE", "AI-generated", "synthetic", "a deepfake")),
    ]
)
ASIDES = st.sampled_from(
    [
        "",
        ", having watched it twice,",
        " (and I looked closely)",
        ", to be honest,",
        " \u2014 frankly \u2014",
        ", frame after frame, from the hands to the shadows,",
        ", either early or late,",
    ]
)
DENIALS = st.sampled_from(
    [
        "I do not believe{} that this clip is {}.",
        "I don't think{} that it is {}.",
        "Nobody{} would call this clip {}.",
        "No one{} would say that this is {}.",
        "Nothing{} suggests that the video is {}.",
        "None of the frames{} gives me any reason to call it {}.",
        "Neither the light nor the motion{} makes me believe that the clip is {}.",
        "I never{} saw anything that would make me call it {}.",
        "I see no reason{} to believe that this is {}.",
        "There is no evidence{} that the clip is {}.",
        "At no point{} did I find anything to suggest that it is {}.",
        "Not a single detail{} suggests that this footage is {}.",
    ]
)


@given(DENIALS, ASIDES, WORDS)
def test_a_denial_at_any_distance_is_never_read_as_a_claim(
    denial: str, aside: str, word: tuple[str, str]
) -> None:
    side, claim = word
    label = parse_claimed_label(denial.format(aside, claim))
    assert label is OTHER[side] or isinstance(label, Unparsed)


PLAIN = st.sampled_from(
    [
        "I see no artefacts{} and the clip is {}.",
        "The hands do not deform{}, so this is {}.",
        "Without any flicker{}, the video is {}.",
        "The shadows never move{}; the clip is {}.",
        "There is no doubt{} that it is {}.",
        "Not only is it odd{}: the clip is {}.",
        "The ball does not bounce{}, which means that it is {}.",
        "No warping{}, no flicker: this is {}.",
    ]
)


@given(PLAIN, ASIDES.filter(lambda aside: "either" not in aside), WORDS)
def test_a_denial_of_something_else_leaves_the_claim(
    plain: str, aside: str, word: tuple[str, str]
) -> None:
    side, claim = word
    assert shown("claim", plain.format(aside, claim)) in {side, "N"}


FIELDS = st.sampled_from(
    [
        "Verdict: {}\nExplanation: the trees look real and the hands look fake.",
        "## Verdict\n\n**{}**\n\n## Reason\nEverything else is real, nothing is fake.",
        "**Final answer:** {}\n\n**Why:** the rest could be real or fake.",
        "| Field | Value |\n|---|---|\n| Label | {} |\n| Reason | a fake hand on a real arm |",
        '{{"label": "{}", "explanation": "a real street with a fake dog"}}',
        '```json\n[{{"verdict": "{}"}}, {{"verdict": "unsure"}}]\n```',
        "结论：{}\n理由：背景是真实的，手是假的。",
        "Urteil: {}\nBegründung: Der Hintergrund ist echt, die Hand ist gefälscht.",
        "Вывод: {}\nПричина: фон настоящий, рука поддельная.",
    ]
)


@given(FIELDS, st.sampled_from([("R", "REAL"), ("G", "FAKE"), ("R", "real"), ("G", "fake")]))
def test_a_named_field_is_the_answer_whatever_the_others_explain(
    form: str, word: tuple[str, str]
) -> None:
    side, claim = word
    label = get_protocol("trace").parse(form.format(claim), LENIENT).label
    assert SIDES.get(label) == side
