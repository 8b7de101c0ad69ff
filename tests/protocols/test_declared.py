"""What each instrument declares of itself, and that the declarations hold together."""

from dataclasses import dataclass

import pytest

from unreel.core.box import Box
from unreel.core.clip import ClipId, Generated, Origin, Real
from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Label, Pair, Rating
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace
from unreel.core.verdict import (
    LocatedSegment,
    LocateVerdict,
    Position,
    PreferenceVerdict,
    RealismVerdict,
    RealityVerdict,
    TraceVerdict,
    Unparsed,
    UnparsedReason,
)
from unreel.protocols.box_space import BoxSpace
from unreel.protocols.presentation import shows_frame_times
from unreel.protocols.protocol import (
    AnswerContext,
    Protocol,
    ScoredQuestion,
    get_protocol,
    list_protocol_names,
)
from unreel.protocols.trace.ground_truth import TraceTruth

NAMES = list_protocol_names()
MISSING = Unparsed(UnparsedReason.MISSING)
UNIT = AnswerContext(space=BoxSpace("unit", 1, 1))


@dataclass(frozen=True)
class Clip:
    """A clip as a benchmark knows it."""

    origin: Origin
    rating: Rating | None = None
    traces: tuple[Trace, ...] = ()

    @property
    def label(self) -> Label:
        return Label.REAL if isinstance(self.origin, Real) else Label.GENERATED


REAL = Clip(origin=Real(), rating=Rating(score=4))
FAKE = Clip(
    origin=Generated("Veo"), rating=Rating(score=2), traces=(Trace(span=TimeSpan(0, 500_000)),)
)


def shown(asked: Protocol, *, real: bool = True) -> list[Clip]:
    return ([REAL, FAKE] if real else [FAKE, REAL])[: asked.n_clips]


def test_only_an_instrument_that_asks_where_and_when_needs_a_space_and_shows_instants() -> None:
    assert [name for name in NAMES if get_protocol(name).needs_box_space] == ["trace", "locate"]
    assert [name for name in NAMES if shows_frame_times(name)] == ["trace", "locate"]
    assert [name for name in NAMES if get_protocol(name).needs_facts] == ["trace", "locate"]
    assert not shows_frame_times("storyboard")


def test_a_condition_can_mark_frames_or_leave_them_bare_whatever_is_asked() -> None:
    assert all(shows_frame_times(name, "on") for name in (*NAMES, "storyboard"))
    assert not any(shows_frame_times(name, "off") for name in (*NAMES, "storyboard"))


def test_questions_about_times_show_two_frames_a_second_and_the_others_8_frames() -> None:
    plans = {name: get_protocol(name).sampling for name in NAMES}
    assert plans == {name: "fps-2" if shows_frame_times(name) else "uniform-8" for name in NAMES}


def test_answers_to_earlier_words_are_scored_where_the_rules_are_the_same() -> None:
    told = {name: [str(one) for one in get_protocol(name).read_instruments] for name in NAMES}
    assert told == {
        "trace": ["trace@1"],
        "realism": ["realism@1", "realism@2"],
        "reality": ["reality@1", "reality@2"],
        "preference": ["preference@1"],
        "locate": ["locate@1"],
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_truth_is_of_the_kind_that_is_declared(name: str) -> None:
    asked = get_protocol(name)
    (truth,) = asked.truths.of(shown(asked), duration_us=1_000_000)
    assert isinstance(truth, asked.truths.kind)


def test_trace_has_a_truth_for_each_annotation_row_and_needs_the_length() -> None:
    truths = get_protocol("trace").truths
    two = (Trace(span=TimeSpan(0, 5)), Trace(span=TimeSpan(5, 9)))
    marked = Clip(origin=Generated("Veo"), traces=two)
    found = truths.of([marked], duration_us=10)
    assert found == tuple(
        TraceTruth(label=Label.GENERATED, duration_us=10, trace=trace) for trace in two
    )
    with pytest.raises(InvalidValueError, match=r"no duration declared\. Add a duration_s column"):
        truths.of([marked], duration_us=None)


def test_locate_has_one_truth_with_all_segments_and_needs_them_for_a_generated_clip() -> None:
    truths = get_protocol("locate").truths
    two = (Trace(span=TimeSpan(0, 5)), Trace(span=TimeSpan(5, 9)))
    (truth,) = truths.of([Clip(origin=Generated("Veo"), traces=two)], duration_us=None)
    assert (truth.traces, truth.label, truth.duration_us) == (two, Label.GENERATED, None)
    with pytest.raises(InvalidValueError, match=r"no segment .* is marked\. Add a traces column"):
        truths.of([Clip(origin=Generated("Veo"))], duration_us=10)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("real", [True, False])
def test_the_right_answer_is_read_as_right(name: str, *, real: bool) -> None:
    asked = get_protocol(name)
    (truth,) = asked.truths.of(shown(asked, real=real), duration_us=1_000_000)
    reading = AnswerContext(mode="lenient", space=UNIT.space)
    said = asked.parse(asked.wording.right(truth), reading)
    assert (
        asked.wording.right(truth)
        == {
            "trace": ("FAKE", "REAL"),
            "realism": ("2", "4"),
            "reality": ("0", "1"),
            "preference": ("2", "1"),
            "locate": ('[{"start": 0.0, "end": 0.5}]', "[]"),
        }[name][real]
    )
    assert (
        asked.wording.headline(said)
        == {
            "trace": ("generated", "real"),
            "realism": ("2 of 5 (poor)", "4 of 5 (good)"),
            "reality": ("generated", "real"),
            "preference": ("the second is real", "the first is real"),
            "locate": ("generated", "real"),
        }[name][real]
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("p_real", [0.0, 0.9])
def test_a_belief_is_phrased_in_the_form_that_each_prompt_asks_for(
    name: str, p_real: float
) -> None:
    asked = get_protocol(name)
    beliefs = [p_real, 1.0 - p_real][: asked.n_clips]
    for prompt in asked.prompts:
        said = asked.parse(
            asked.wording.phrase(beliefs, prompt), AnswerContext(prompt=prompt, space=UNIT.space)
        )
        decision = asked.wording.decision(said)
        if name == "realism":
            assert decision == (1 if p_real else 5)
        else:
            assert decision in (
                {Label.GENERATED, Position.SECOND} if p_real else {Label.REAL, Position.FIRST}
            )


@pytest.mark.parametrize(
    ("name", "verdict", "headline", "details"),
    [
        (
            "trace",
            TraceVerdict(
                label=Label.GENERATED,
                box=Box(0.0, 0.0, 1.0, 1.0),
                start_us=1_250_000,
                explanation=Unparsed(UnparsedReason.MALFORMED, "<expl"),
            ),
            "generated",
            [
                ("from", "1.25 s"),
                (
                    "place",
                    "0% to 100% across, 0% to 100% down (100% of the frame, nearly the whole frame)",
                ),
                ("because", "not given (malformed: '<expl')"),
            ],
        ),
        (
            "trace",
            TraceVerdict(label=Label.REAL, box=MISSING, start_us=MISSING, explanation=MISSING),
            "real",
            [],
        ),
        (
            "realism",
            RealismVerdict(score=5, problem="none", adherence=MISSING),
            "5 of 5 (excellent)",
            [("problem", "none"), ("in the scale's words", "not given (missing)")],
        ),
        ("reality", RealityVerdict(label=MISSING), "no verdict", []),
        (
            "reality",
            RealityVerdict(label=Label.REAL, confidence=82.5),
            "real",
            [("confidence", "82.5 of 100")],
        ),
        (
            "reality",
            RealityVerdict(label=Label.REAL, confidence=MISSING),
            "real",
            [("confidence", "not given (missing)")],
        ),
        ("preference", PreferenceVerdict(real=Position.FIRST), "the first is real", []),
        ("locate", LocateVerdict(segments=MISSING), "no verdict", []),
        ("locate", LocateVerdict(segments=()), "real", []),
        (
            "locate",
            LocateVerdict(
                segments=(
                    LocatedSegment(
                        Trace(
                            span=TimeSpan(1_250_000, 2_000_000),
                            track=(BoxAt(1_250_000, Box(0, 0, 1, 1)),),
                            categories=frozenset({Category.OTHER}),
                            explanation="It melts.",
                        ),
                        0.8,
                    ),
                )
            ),
            "generated",
            [("segment 1", "1.25 s to 2.00 s, other, confidence 80%, 1 box: It melts.")],
        ),
    ],
)
def test_a_verdict_is_put_in_words(name: str, verdict, headline: str, details) -> None:
    wording = get_protocol(name).wording
    assert wording.headline(verdict) == headline
    assert list(wording.details(verdict)) == details


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_is_one_of_the_scorecard_and_lies_in_its_range(name: str) -> None:
    asked = get_protocol(name)
    rows = []
    for i in range(8):
        real = i % 2 == 0
        clips = shown(asked, real=real) if asked.n_clips > 1 else [REAL if real else FAKE]
        (truth,) = asked.truths.of(clips, duration_us=1_000_000)
        said = asked.parse(asked.wording.phrase([0.9, 0.1][: asked.n_clips], "paper"), UNIT)
        subject = ClipId(f"{i}") if asked.n_clips == 1 else Pair(ClipId(f"{i}"), ClipId(f"{i}'"))
        rows.append(ScoredQuestion(subject=subject, truth=truth, outcome=said))
    measured = {
        metric.name.partition(": ")[0]: metric.value for metric in asked.score(rows, seed=1).metrics
    }
    for figure in asked.figures:
        assert figure.metric in measured
        value = getattr(measured[figure.metric], "value", figure.range[0])
        assert figure.range[0] <= value <= figure.range[1]
        assert all((figure.title, figure.meaning, figure.group))
        assert (figure.group == "habit") == (figure.better == "neither")


@pytest.mark.parametrize("name", NAMES)
def test_every_list_of_figures_names_declared_ones(name: str) -> None:
    figures = get_protocol(name).figures
    lists = (
        figures.leading,
        figures.exported,
        figures.steps,
        figures.class_metrics,
        figures.by_creator,
        figures.by_category,
        figures.by_part,
        (figures.per_creator,) if figures.per_creator else (),
    )
    assert all(
        metric in figures and figures[metric].metric == metric for each in lists for metric in each
    )
    assert figures.leading
    assert figures.exported
    assert "unheard-of" not in figures
