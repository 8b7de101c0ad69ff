import json
from fractions import Fraction
from math import hypot, sqrt
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unreel.core.box import Box
from unreel.core.clip import ClipId
from unreel.core.estimate import Estimate, Metric, Scorecard, Unmeasured
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Label
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Trace
from unreel.core.verdict import TraceVerdict, Unparsed, UnparsedReason
from unreel.protocols.paper_formulas import compute_trace_overall_score, round_as_printed
from unreel.protocols.protocol import ScoredQuestion
from unreel.protocols.trace.ground_truth import TraceTruth
from unreel.protocols.trace.scorer import TraceRow, compute_trace_scorecard

CLIP_US = 10_000_000
MISSING = Unparsed(UnparsedReason.MISSING)
LEFT, RIGHT = Box(0, 0, 0.5, 1), Box(0.5, 0, 1, 1)
REAL_TRUTH = TraceTruth(label=Label.REAL, duration_us=CLIP_US)
SAYS_REAL = TraceVerdict(label=Label.REAL, box=MISSING, start_us=MISSING, explanation=MISSING)
FAILED = Failure(FailureReason.OUT_OF_TIME, "slow")


def fake(box: Box | None = LEFT, start_us: int = 2_000_000, explanation: str = "why") -> TraceTruth:
    track = () if box is None else (BoxAt(start_us, box),)
    span = TimeSpan(start_us, CLIP_US)
    trace = Trace(span=span, track=track, explanation=explanation)
    return TraceTruth(label=Label.GENERATED, duration_us=CLIP_US, trace=trace)


def says_fake(
    box: Box | Unparsed = LEFT,
    start_us: int | Unparsed = 2_000_000,
    explanation: str | Unparsed = "because",
    label: Label | Unparsed = Label.GENERATED,
) -> TraceVerdict:
    return TraceVerdict(label=label, box=box, start_us=start_us, explanation=explanation)


def row(
    clip: str, truth: TraceTruth, outcome: TraceVerdict | Failure, judged: float | None = None
) -> TraceRow:
    return ScoredQuestion(subject=ClipId(clip), truth=truth, outcome=outcome, text_score=judged)


def metric(scorecard: Scorecard, name: str) -> Metric:
    return next(each for each in scorecard.metrics if each.name == name)


def value(scorecard: Scorecard, name: str) -> float:
    measured = scorecard[name]
    assert isinstance(measured, Estimate), f"{name}: {measured}"
    return measured.value


HAND = [
    row("r1", REAL_TRUTH, SAYS_REAL),
    row("r2", REAL_TRUTH, says_fake()),
    row("r3", REAL_TRUTH, says_fake(label=Unparsed(UnparsedReason.AMBIGUOUS, "REAL or FAKE"))),
    row("f1", fake(), says_fake(), 1.0),
    row("f2", fake(), says_fake(box=Box(0, 0, 1, 1), start_us=4_000_000), 0.5),
    row("f3", fake(), SAYS_REAL, 1.0),
    row("f4", fake(), says_fake(box=Unparsed(UnparsedReason.MALFORMED, "?"), start_us=MISSING), 0.0),
    row("f5", fake(explanation=""), says_fake(explanation=MISSING, start_us=60_000_000), 1.0),
    row("f6", fake(), FAILED),
]  # fmt: skip


def test_a_table_computed_by_hand() -> None:
    card = compute_trace_scorecard(HAND, seed=1)
    assert (card.n_questions, card.n_answered) == (9, 8)
    assert value(card, "accuracy") == pytest.approx(100 * 5 / 8)
    assert value(card, "fake-accuracy") == pytest.approx(100 * 4 / 5)
    assert value(card, "real-accuracy") == pytest.approx(100 * 1 / 3)
    # f1 meets the box, f2 names the frame, f3 says REAL, f4 has none, f5 meets it.
    assert value(card, "box-iou") == pytest.approx(100 * (1 + 0.5 + 0 + 0 + 1) / 5)
    assert value(card, "box-distance") == pytest.approx(100 * (0 + 0.25 / sqrt(2) + 1 + 1 + 0) / 5)
    # f5 is 58 s late in a clip of 10 s: capped.
    assert value(card, "time-distance") == pytest.approx(100 * (0 + 0.2 + 1 + 1 + 1) / 5)
    # f5 has no text to compare with; f3 said REAL, so that the judge's score does not count.
    assert value(card, "explanation") == pytest.approx(100 * (1 + 0.5 + 0 + 0) / 4)
    assert value(card, "overall") == pytest.approx(
        compute_trace_overall_score(
            accuracy=value(card, "accuracy"),
            explanation=value(card, "explanation"),
            box_iou=value(card, "box-iou"),
            time_distance=value(card, "time-distance"),
        )
    )


def test_failures_and_unread_parts_are_counted_by_reason() -> None:
    card = compute_trace_scorecard(HAND, seed=1)
    assert card.failures == {"out-of-time": 1}
    assert card.unparsed == {
        "box: malformed": 1,
        "explanation: missing": 1,
        "label: ambiguous": 1,
        "start: missing": 1,
    }


def test_explanations_without_a_judge_are_unmeasured_and_never_0() -> None:
    card = compute_trace_scorecard([row(f"f{i}", fake(), says_fake()) for i in range(8)], seed=1)
    assert card["explanation"] == Unmeasured("no judge has scored the explanations")
    assert card["overall"] == Unmeasured("explanation: no judge has scored the explanations")
    assert card.unparsed == {"explanation: unscored": 8}
    assert value(card, "box-iou") == 100


def test_an_unscored_explanation_is_left_out() -> None:
    rows = [
        row("a", fake(), says_fake(), 1.0),
        row("b", fake(), says_fake()),
        row("c", fake(), SAYS_REAL),
    ]
    card = compute_trace_scorecard(rows, seed=1)
    explained = card["explanation"]
    assert isinstance(explained, Estimate)
    assert (explained.value, explained.n) == (50, 2)
    assert card.unparsed == {"explanation: unscored": 1}
    assert str(metric(card, "explanation").coverage) == "2/3 parsed"


TWO_TRACES = [
    row("f", fake(LEFT, 2_000_000), says_fake(RIGHT, 5_000_000), 0.0),
    row("f", fake(RIGHT, 6_000_000), says_fake(RIGHT, 5_000_000), 1.0),
    row("g", fake(LEFT, 2_000_000), says_fake(LEFT, 2_000_000), 0.5),
]


def test_one_answer_is_compared_with_every_trace_of_its_clip() -> None:
    card = compute_trace_scorecard(TWO_TRACES, seed=1)
    assert (card.n_questions, card.n_answered) == (2, 2)
    assert value(card, "box-iou") == pytest.approx(100 * 2 / 3)
    assert value(card, "time-distance") == pytest.approx(100 * (0.3 + 0.1 + 0) / 3)


def test_per_video_figures_take_the_mean_of_a_clip_first() -> None:
    card = compute_trace_scorecard(TWO_TRACES, seed=1)
    assert value(card, "box-iou-per-video") == pytest.approx(75)
    assert value(card, "time-distance-per-video") == pytest.approx(100 * (0.2 + 0) / 2)
    assert value(card, "explanation-per-video") == pytest.approx(50)
    assert metric(card, "box-iou-per-video").coverage.asked == 2


def test_best_of_compares_with_the_one_trace_that_fits_best() -> None:
    card = compute_trace_scorecard(TWO_TRACES, seed=1)
    assert value(card, "box-iou-best-of") == 100
    assert value(card, "time-distance-best-of") == pytest.approx(100 * (0.1 + 0) / 2)
    assert value(card, "explanation-best-of") == pytest.approx(75)


def test_best_of_falls_back_on_time_where_boxes_tell_nothing() -> None:
    rows = [
        row("f", fake(None, 2_000_000), says_fake(start_us=6_000_000)),
        row("f", fake(None, 7_000_000), says_fake(start_us=6_000_000)),
    ]
    assert value(compute_trace_scorecard(rows, seed=1), "time-distance-best-of") == pytest.approx(
        10
    )


def test_a_generated_clip_without_a_trace_counts_for_labels_only() -> None:
    unseen = TraceTruth(label=Label.GENERATED, duration_us=CLIP_US)
    card = compute_trace_scorecard([row("f", unseen, says_fake())], seed=1)
    assert value(card, "fake-accuracy") == 100
    assert card["box-iou"] == Unmeasured("no answered row asks for it")
    assert card["real-accuracy"] == Unmeasured("no answered row asks for it")


def test_habits_are_counted_per_clip_among_what_could_be_read() -> None:
    whole = Box(0.01, 0, 0.99, 1)
    rows = [
        *HAND,
        row("w", fake(), says_fake(whole), 0.0),
        row("w", fake(RIGHT), says_fake(whole), 0.0),
    ]
    card = compute_trace_scorecard(rows, seed=1)
    assert value(card, "answered-real") == pytest.approx(100 * 2 / 8)
    assert value(card, "whole-frame-boxes") == pytest.approx(100 * 2 / 6)
    assert str(metric(card, "whole-frame-boxes").coverage) == "6/9 parsed"


def test_the_printed_accuracies_follow_from_their_counts(shared: Path) -> None:
    tables = json.loads((shared / "published" / "goldens.json").read_text(encoding="utf-8"))
    gpt = next(each for each in tables["deeptracereward"]["test"] if each["model"] == "GPT 5")
    rows = [
        *(row(f"f{i}", fake(), says_fake() if i < 372 else SAYS_REAL, 1.0) for i in range(440)),
        *(row(f"r{i}", REAL_TRUTH, SAYS_REAL if i < 328 else says_fake()) for i in range(332)),
    ]
    card = compute_trace_scorecard(rows, seed=1)
    for name, printed in (
        ("accuracy", "acc"),
        ("fake-accuracy", "fake_acc"),
        ("real-accuracy", "real_acc"),
    ):
        assert float(round_as_printed(value(card, name))) == gpt["printed"][printed]
    assert round_as_printed(Fraction(37200, 440)) == round_as_printed(value(card, "fake-accuracy"))


boxes = st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(1, 2), st.integers(1, 2)).map(
    lambda p: Box(p[0] / 10, p[1] / 10, (p[0] + p[2]) / 10, (p[1] + p[3]) / 10)
)
truths = st.one_of(
    st.just(REAL_TRUTH),
    st.builds(fake, boxes, st.integers(0, CLIP_US - 1), st.sampled_from(["", "why"])),
)
verdicts = st.one_of(
    st.just(SAYS_REAL),
    st.just(FAILED),
    st.builds(
        says_fake,
        st.one_of(boxes, st.just(MISSING)),
        st.one_of(st.integers(0, 3 * CLIP_US), st.just(MISSING)),
        st.sampled_from(["because", MISSING]),
        st.sampled_from([Label.GENERATED, MISSING]),
    ),
)


@settings(max_examples=60)
@given(st.lists(st.tuples(truths, verdicts, st.sampled_from([0.0, 0.5, 1.0])), max_size=9))
def test_figures_equal_a_plain_loop(cases: list[tuple[TraceTruth, TraceVerdict | Failure, float]]) -> None:  # fmt: skip
    card = compute_trace_scorecard([row(f"c{i}", *case) for i, case in enumerate(cases)], seed=1)
    sums: dict[str, list[float]] = {name: [] for name in ("accuracy", "explanation", "box-iou", "box-distance", "time-distance")}  # fmt: skip
    for truth, verdict, judged in cases:
        if isinstance(verdict, Failure):
            continue
        sums["accuracy"].append(verdict.label == truth.label)
        if truth.trace is None:
            continue
        fakes = verdict.label != Label.REAL
        a, b = truth.trace.track[0].box, verdict.box
        iou, far = 0.0, 1.0
        if fakes and isinstance(b, Box):
            both = max(0, min(a.x1, b.x1) - max(a.x0, b.x0)) * max(
                0, min(a.y1, b.y1) - max(a.y0, b.y0)
            )
            iou = both / (a.area + b.area - both)
            far = hypot(a.x0 + a.x1 - b.x0 - b.x1, a.y0 + a.y1 - b.y0 - b.y1) / 2 / sqrt(2)
        sums["box-iou"].append(iou)
        sums["box-distance"].append(min(1, far))
        late = 1.0
        if fakes and isinstance(verdict.start_us, int):
            late = min(1, abs(verdict.start_us - truth.trace.span.start_us) / CLIP_US)
        sums["time-distance"].append(late)
        if truth.trace.explanation:
            sums["explanation"].append(
                judged if fakes and isinstance(verdict.explanation, str) else 0
            )
    for name, values in sums.items():
        if values:
            assert value(card, name) == pytest.approx(100 * sum(values) / len(values))
        else:
            assert isinstance(card[name], Unmeasured)
