"""The metrics of `locate` are those of their definitions, and each says what it rests on."""

import math
import random
from dataclasses import replace

import pytest

from protocols import locate_reference as ref
from unreel.core.clip import ClipId
from unreel.core.estimate import Estimate, Scorecard, Unmeasured
from unreel.core.failure import Failure, FailureReason
from unreel.core.span import TimeSpan
from unreel.core.trace import Category, Trace
from unreel.core.verdict import LocatedSegment, LocateVerdict, Unparsed, UnparsedReason
from unreel.protocols.locate.ground_truth import LocateTruth
from unreel.protocols.protocol import ScoredQuestion, get_protocol

CARDS = 60


def card_of(rows: list[ScoredQuestion]) -> Scorecard:
    return get_protocol("locate").score(rows, seed=1)


def value(scorecard: Scorecard, name: str) -> float:
    found = scorecard[name]
    assert isinstance(found, Estimate), f"{name}: {found}"
    return found.value


def row(
    marked_trace: tuple[Trace, ...], answered: tuple[LocatedSegment, ...], name: str = "a"
) -> ScoredQuestion:
    return ScoredQuestion(
        subject=ClipId(name),
        truth=LocateTruth(traces=marked_trace, duration_us=60_000_000),
        outcome=LocateVerdict(segments=answered),
    )


def trace(start_s: float, end_s: float, *categories: Category) -> Trace:
    span = TimeSpan(int(start_s * 1e6), int(end_s * 1e6))
    return Trace(span=span, categories=frozenset(categories))


def test_time_metrics_of_cards_equal_a_second_implementation() -> None:
    for seed in range(CARDS):
        clips = ref.draw_clips(seed, empty=seed % 2 == 0)
        card = card_of(ref.build_rows(clips))
        expected = {
            f"ap-{t:g}-activitynet": ref.activitynet_ap(clips, t) for t in (0.3, 0.5, 0.75, 0.95)
        }
        for name, steps in (("map-activitynet", ref.AVERAGED), ("map-0.3-activitynet", ref.ALL)):
            expected[name] = sum(ref.activitynet_ap(clips, t) for t in steps) / len(steps)
        expected["ar-10-activitynet"] = ref.activitynet_ar(clips, 10)
        if seed % 2:
            for t in (0.5, 0.75, 0.9, 0.95):
                expected[f"ap-{t:g}-avdeepfake1m"] = ref.avdeepfake1m_ap(clips, t)
            for n in (5, 10):
                expected[f"ar-{n}-avdeepfake1m"] = ref.avdeepfake1m_ar(clips, n)
        best = ref.best_tious(clips)
        expected["mean-tiou"] = sum(best) / len(best)
        expected["recall-0.5"] = sum(each >= 0.5 for each in best) / len(best)
        for name, figure in expected.items():
            assert value(card, name) == pytest.approx(100 * figure), (seed, name)


def test_tube_metrics_equal_a_second_implementation() -> None:
    rng = random.Random(4)
    for _ in range(40):
        pairs = [
            (
                tuple(ref.draw_tube(rng) for _ in range(rng.randint(1, 2))),
                tuple(ref.draw_tube(rng) for _ in range(rng.randint(0, 2))),
            )
            for _ in range(3)
        ]
        card = card_of(
            [row(m, tuple(map(LocatedSegment, a)), f"{k}") for k, (m, a) in enumerate(pairs)]
        )
        vious, points = [], []
        for marked, answered in pairs:
            for true in marked:
                vious.append(max((ref.viou(one, true) for one in answered), default=0.0))
                near = max(answered, key=lambda one: one.span.iou(true.span), default=None)
                points.append(near is not None and _points_at(near, true))
        assert value(card, "tube-viou") == pytest.approx(100 * sum(vious) / len(vious))
        assert value(card, "pointing-hit") == pytest.approx(100 * sum(points) / len(points))


def _points_at(near: Trace, true: Trace) -> bool:
    start = max(near.span.start_us, true.span.start_us)
    end = min(near.span.end_us, true.span.end_us)
    if start >= end:
        return False
    ours, theirs = (ref.box_at(one, (start + end) / 2) for one in (near, true))
    x, y = (ours[0] + ours[2]) / 2, (ours[1] + ours[3]) / 2
    return theirs[0] <= x <= theirs[2] and theirs[1] <= y <= theirs[3]


def test_perfect_answers_lose_one_nth_under_avdeepfake1m_alone() -> None:
    marked = [trace(k, k + 1) for k in range(10)]
    rows = [row((m,), (LocatedSegment(m, 0.9 - k / 100),), f"{k}") for k, m in enumerate(marked)]
    card = card_of(rows)
    assert value(card, "ap-0.5-activitynet") == 100
    assert value(card, "ap-0.5-avdeepfake1m") == pytest.approx(90)


def test_an_overlap_exactly_at_the_threshold_counts_under_activitynet_alone() -> None:
    rows = [
        row((trace(0, 2),), (LocatedSegment(trace(0, 1), 0.5), LocatedSegment(trace(9, 10), 0.9)))
    ]
    card = card_of(rows)
    assert value(card, "ap-0.5-activitynet") == 50
    assert value(card, "ap-0.5-avdeepfake1m") == 0
    assert value(card, "ar-10-activitynet") == 10  # one threshold of ten
    assert value(card, "ar-10-avdeepfake1m") == 0


def test_without_confidence_there_is_no_precision_and_the_card_says_why() -> None:
    clips = ref.draw_clips(3, 8)
    rows = [
        replace(
            r,
            outcome=LocateVerdict(
                segments=tuple(replace(s, confidence=None) for s in r.outcome.segments)
            ),
        )
        for r in ref.build_rows(clips)
    ]
    card = card_of(rows)
    n = sum(len(clip.answered) for clip in clips)
    why = f"{n} of {n} segments have no confidence, and average precision ranks by it"
    assert card["map-activitynet"] == Unmeasured(why)
    assert isinstance(card["ar-10-activitynet"], Estimate)
    assert isinstance(card["segment-f1"], Estimate)


def test_an_empty_answer_is_no_number_under_avdeepfake1m() -> None:
    card = card_of([row((trace(0, 1),), ()), row((), (), "b")])
    assert value(card, "ap-0.5-activitynet") == 0
    for name in ("ap-0.5-avdeepfake1m", "ar-10-avdeepfake1m"):
        found = card[name]
        assert isinstance(found, Unmeasured)
        assert "2 of 2 answers hold no segment" in found.why


def test_f1_scores_pair_each_segment_once() -> None:
    merge, split = Category.OBJECT_MERGING, Category.OBJECT_SPLITTING
    marked = (trace(0, 10, merge), trace(20, 30, split))
    answered = tuple(
        LocatedSegment(t)
        for t in (trace(0, 9, merge), trace(0, 10, split), trace(20, 28, merge), trace(50, 51))
    )
    card = card_of([row(marked, answered)])
    assert value(card, "segment-f1") == pytest.approx(100 * 2 * 2 / (4 + 2))
    # The exact second answer is the pair of the first marked segment, and names another category.
    assert value(card, "category-f1") == 0
    agreeing = card_of([row(marked, answered[:1] + answered[2:])])
    assert value(agreeing, "category-f1") == pytest.approx(100 * 2 / (2 + 2))


def test_false_alarms_count_segments_of_clean_hours() -> None:
    rows = [row((), (LocatedSegment(trace(0, 1)),) * (k % 2), f"{k}") for k in range(30)]
    assert value(card_of(rows), "false-alarms") == pytest.approx(15 / 0.5)
    quiet = card_of([row((), (), f"{k}") for k in range(30)])["false-alarms"]
    assert isinstance(quiet, Estimate)
    assert (quiet.value, quiet.low) == (0, 0)
    assert quiet.high == pytest.approx(-math.log(0.025) / 0.5)


def test_false_alarms_of_few_scenes_have_a_poisson_interval() -> None:
    one = card_of([row((), (LocatedSegment(trace(0, 1)),), "only")])["false-alarms"]
    assert isinstance(one, Estimate)
    hours = 1 / one.value
    assert (one.low * hours, one.high * hours) == pytest.approx((0.0253, 5.5716), abs=1e-4)
    bursts = [row((), (LocatedSegment(trace(0, 1)),) * (15 * (k < 2)), f"{k}") for k in range(30)]
    steady = [row((), (LocatedSegment(trace(0, 1)),), f"{k}") for k in range(30)]
    wide, narrow = (card_of(rows)["false-alarms"] for rows in (bursts, steady))
    assert isinstance(wide, Estimate)
    assert isinstance(narrow, Estimate)
    assert wide.value == narrow.value
    assert narrow.low < narrow.value < narrow.high
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


def test_the_onset_error_is_in_seconds_over_segments_that_were_met() -> None:
    rows = [
        row((trace(10, 20), trace(30, 31)), (LocatedSegment(trace(10 + k, 20)),), f"{k}")
        for k in range(8)
    ]
    (metric,) = [m for m in card_of(rows).metrics if m.name == "onset-error"]
    assert isinstance(metric.value, Estimate)
    assert metric.value.value == pytest.approx(3.5)
    assert (metric.coverage.parsed, metric.coverage.asked) == (8, 16)


def test_an_unreadable_answer_misses_everything_and_is_no_alarm() -> None:
    gap = LocateVerdict(segments=Unparsed(UnparsedReason.MALFORMED))
    rows = [
        replace(row((trace(0, 1),), ()), outcome=gap),
        replace(row((), (), "b"), outcome=gap),
        replace(row((), (), "c"), outcome=Failure(FailureReason.REFUSED, "")),
    ]
    card = card_of(rows)
    assert (card.n_answered, card.unparsed) == (2, {"segments: malformed": 2})
    assert value(card, "mean-tiou") == 0
    assert isinstance(card["false-alarms"], Unmeasured)
