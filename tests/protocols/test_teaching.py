"""What a reviewer is taught to say reads back as the truth that it was taught."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.box import Box
from unreel.core.clip import Generated, Real
from unreel.core.errors import InvalidValueError, UnknownNameError
from unreel.core.judgement import ErrorFamily, Label, Rating
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Trace
from unreel.core.verdict import Position, Unparsed
from unreel.protocols.box_space import BoxSpace
from unreel.protocols.protocol import AnswerContext, get_protocol, list_protocol_names
from unreel.protocols.realism.prompts import FAMILY_PROMPTS, FREE_PROMPTS
from unreel.protocols.trace.ground_truth import TraceTruth

SPACES = st.sampled_from(
    [
        BoxSpace("permille", 1000, 1000),
        BoxSpace("model-input 56x28", 56, 28),
        BoxSpace("pixel", 1920, 1080),
    ]
)
PARTS = st.tuples(*(st.floats(0, 1) for _ in range(4)))
TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(
            [
                "The",
                "cup",
                "melts.",
                "<think>",
                "</think>",
                "<answer>5</answer>",
                "[1,",
                "2]",
                "REAL",
                "FAKE",
                "The",
                "reason",
                "is",
                "because",
                "Problem",
                "Description:",
                "Standard",
                "Adherence:",
                "The",
                "unnatural",
                "part",
                "is",
                "at",
                "[1,",
                "2,",
                "3,",
                "4]",
                "\n",
            ]
        ),
        max_size=12,
    ).map(" ".join),
)

FRAME = BoxSpace("pixel", 640, 360)
MELTING = Trace(
    span=TimeSpan(1_500_000, 2_000_000),
    track=(BoxAt(1_500_000, Box(0.25, 0.5, 0.5, 0.75)),),
    explanation="the hand melts.",
)


def verdict(name: str, text: str, prompt: str, space: BoxSpace | None = None) -> Any:
    return get_protocol(name).parse(text, AnswerContext(mode="strict", prompt=prompt, space=space))


def plain(text: str) -> str:
    return " ".join(text.split())


@given(
    parts=PARTS,
    start_us=st.integers(0, 3_600_000_000),
    text=TEXTS,
    placed=st.booleans(),
    space=SPACES,
    prompt=st.sampled_from(sorted(get_protocol("trace").wording.teaches)),
)
def test_a_taught_trace_reads_back(
    *,
    parts: tuple[float, ...],
    start_us: int,
    text: str,
    placed: bool,
    space: BoxSpace,
    prompt: str,
) -> None:
    x0, x1 = sorted((parts[0], parts[2]))
    y0, y1 = sorted((parts[1], parts[3]))
    box = Box(
        min(x0, 0.99), min(y0, 0.99), max(x1, min(x0, 0.99) + 0.01), max(y1, min(y0, 0.99) + 0.01)
    )
    trace = Trace(
        span=TimeSpan(start_us, start_us + 1_000_000),
        track=(BoxAt(start_us, box),) if placed else (),
        explanation=text,
    )
    truth = TraceTruth(label=Label.GENERATED, duration_us=4_000_000_000, trace=trace)
    try:
        taught = get_protocol("trace").wording.teach(truth, prompt, space)
    except InvalidValueError:
        return
    said = verdict("trace", taught, prompt, space)
    assert said.label is Label.GENERATED
    if placed:
        true = space.corners(box)
        # A box thinner than a unit is taught one unit thick.
        thick = min(true[2] - true[0], true[3] - true[1]) >= 1
        for told, meant in zip(space.corners(said.box), true, strict=True):
            assert abs(told - meant) <= (0.5 if thick else 1.5) + 1e-6
    else:
        assert isinstance(said.box, Unparsed)
    if placed and "no-time" not in prompt and "no-both" not in prompt:
        assert abs(said.start_us - start_us) <= 5_000
    else:
        assert isinstance(said.start_us, Unparsed)
    if plain(text) and "no-explanation" not in prompt and "no-both" not in prompt:
        assert said.explanation == plain(text)
    else:
        assert isinstance(said.explanation, Unparsed)


@pytest.mark.parametrize("prompt", sorted(get_protocol("trace").wording.teaches))
def test_a_real_clip_is_taught_as_real_and_nothing_more(prompt: str) -> None:
    truth, space = TraceTruth(label=Label.REAL, duration_us=1), BoxSpace("permille", 1000, 1000)
    said = verdict(
        "trace", get_protocol("trace").wording.teach(truth, prompt, space), prompt, space
    )
    assert said.label is Label.REAL
    assert isinstance(said.box, Unparsed)
    assert isinstance(said.explanation, Unparsed)


def taught(trace: Trace | None, prompt: str = "fine-tuning") -> str:
    truth = TraceTruth(label=Label.GENERATED, duration_us=4_000_000, trace=trace)
    return get_protocol("trace").wording.teach(truth, prompt, FRAME)


@pytest.mark.parametrize(
    ("variant", "answer"),
    [
        ("fine-tuning", "FAKE. The video is AI-generated. The unnatural part is at [160, 180, 320, 270] starting 1.5 seconds. The reason is because the hand melts."),
        ("fine-tuning-no-time", "FAKE. The video is AI-generated. The unnatural part is at [160, 180, 320, 270]. The reason is because the hand melts."),
        ("fine-tuning-no-explanation", "FAKE. The video is AI-generated. The unnatural part is at [160, 180, 320, 270] starting 1.5 seconds."),
        ("fine-tuning-no-both", "FAKE. The video is AI-generated. The unnatural part is at [160, 180, 320, 270]."),
    ],
)  # fmt: skip
def test_training_answers_follow_the_papers_template(variant: str, answer: str) -> None:
    assert taught(MELTING, variant) == answer


def test_a_generated_clip_without_a_trace_is_taught_by_its_label_alone() -> None:
    truth = TraceTruth(label=Label.GENERATED, duration_us=1)
    taught = get_protocol("trace").wording.teach(truth, "fine-tuning", BoxSpace("pixel", 64, 48))
    assert taught == "FAKE. The video is AI-generated."


@pytest.mark.parametrize("space", [None, BoxSpace("unit", 1, 1)])
def test_boxes_without_a_space_of_whole_units_are_refused(space: BoxSpace | None) -> None:
    truth = TraceTruth(label=Label.REAL, duration_us=1)
    with pytest.raises(InvalidValueError, match="space"):
        get_protocol("trace").wording.teach(truth, "fine-tuning", space)


@given(
    score=st.integers(1, 5),
    problem=TEXTS,
    adherence=TEXTS,
    family=st.sampled_from([None, *ErrorFamily]),
    prompt=st.sampled_from(sorted(get_protocol("realism").wording.teaches)),
)
def test_a_taught_rating_reads_back(
    score: int, problem: str, adherence: str, family: ErrorFamily | None, prompt: str
) -> None:
    truth = Rating(score=score, problem=problem, adherence=adherence, family=family)
    try:
        taught = get_protocol("realism").wording.teach(truth, prompt, None)
    except InvalidValueError:
        assert "score-only" not in prompt
        return
    said = verdict("realism", taught, prompt)
    assert said.score == score
    if "score-only" in prompt:
        assert isinstance(said.problem, Unparsed)
    elif prompt in FREE_PROMPTS:
        assert said.problem == plain(problem)
    else:
        assert (said.problem, said.adherence) == (plain(problem), plain(adherence))
    if prompt in FAMILY_PROMPTS:
        assert said.family == (family or "none")


@pytest.mark.parametrize("origin", [Real(), Generated("maker")])
def test_a_taught_label_reads_back(origin: Real | Generated) -> None:
    for prompt in get_protocol("reality").wording.teaches:
        taught = get_protocol("reality").wording.teach(origin, prompt, None)
        wanted = Label.REAL if isinstance(origin, Real) else Label.GENERATED
        assert verdict("reality", taught, prompt).label is wanted


@pytest.mark.parametrize("position", list(Position))
def test_a_taught_preference_reads_back(position: Position) -> None:
    for prompt in get_protocol("preference").wording.teaches:
        taught = get_protocol("preference").wording.teach(position, prompt, None)
        assert verdict("preference", taught, prompt).real is position


def test_a_prompt_that_asks_for_what_no_truth_holds_is_refused_by_name() -> None:
    for name in list_protocol_names():
        own = get_protocol(name)
        for prompt in {*own.prompts, "unheard-of"} - own.wording.teaches:
            with pytest.raises(UnknownNameError, match=prompt):
                own.wording.teach(None, prompt, None)
        assert own.wording.teaches
        assert own.wording.teaches <= set(own.prompts)
    assert "paper" not in get_protocol("reality").wording.teaches  # thoughts that nobody wrote down
    assert "confidence" not in get_protocol("reality").wording.teaches
    assert (
        "as-printed-direct" not in get_protocol("preference").wording.teaches
    )  # asks about one clip
