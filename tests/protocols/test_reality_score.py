import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.clip import ClipId, Generated, Origin, Real
from unreel.core.content_ids import digest
from unreel.core.estimate import Estimate, Metric, Scorecard, Unmeasured
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Label
from unreel.core.verdict import RealityVerdict, Unparsed, UnparsedReason
from unreel.protocols.paper_formulas import (
    compute_balanced_accuracy,
    compute_pooled_accuracy,
    round_as_printed,
)
from unreel.protocols.protocol import ScoredQuestion
from unreel.protocols.reality.scorer import RealityRow, compute_reality_scorecard

UNREAD = Unparsed(UnparsedReason.MALFORMED, "maybe")
FAILED = Failure(FailureReason.WORKER_DIED, "gone")
Outcome = Label | Unparsed | Failure


def rows(name: str, origin: Origin, *counts: tuple[Outcome, int]) -> list[RealityRow]:
    outcomes = [outcome for outcome, n in counts for _ in range(n)]
    return [
        ScoredQuestion(
            subject=ClipId(f"{name}{i}"),
            truth=origin,
            outcome=each if isinstance(each, Failure) else RealityVerdict(label=each),
        )
        for i, each in enumerate(outcomes)
    ]


REAL = rows("r", Real(), (Label.REAL, 8), (Label.GENERATED, 2), (UNREAD, 1), (FAILED, 1))
VEO = rows("v", Generated("Veo"), (Label.GENERATED, 3), (Label.REAL, 5), (UNREAD, 2))
SORA = rows("s", Generated("Sora"), (Label.GENERATED, 4), (Label.REAL, 1), (FAILED, 3))


def value(card: Scorecard, name: str) -> float:
    measured = card[name]
    assert isinstance(measured, Estimate), f"{name}: {measured}"
    return measured.value


def metric(card: Scorecard, name: str) -> Metric:
    return next(each for each in card.metrics if each.name == name)


def test_a_table_computed_by_hand() -> None:
    card = compute_reality_scorecard([*REAL, *VEO, *SORA], seed=1)
    assert (card.n_questions, card.n_answered) == (30, 26)
    assert value(card, "pooled: Veo") == pytest.approx(100 * (8 + 3) / (10 + 8))
    assert value(card, "pooled: Sora") == pytest.approx(100 * (8 + 4) / (10 + 5))
    assert value(card, "balanced: Veo") == pytest.approx(100 * (8 / 10 + 3 / 8) / 2)
    assert value(card, "balanced: Sora") == pytest.approx(100 * (8 / 10 + 4 / 5) / 2)
    assert value(card, "caught: Veo") == pytest.approx(100 * 3 / 8)
    assert value(card, "caught: Sora") == pytest.approx(100 * 4 / 5)
    assert value(card, "real-accuracy") == pytest.approx(100 * 8 / 10)
    assert value(card, "fake-accuracy") == pytest.approx(100 * 7 / 13)
    assert value(card, "answered-real") == pytest.approx(100 * (8 + 5 + 1) / 23)


def test_the_average_weighs_creators_alike() -> None:
    card = compute_reality_scorecard([*REAL, *VEO, *SORA], seed=1)
    for figure in ("pooled", "balanced", "pooled-all-clips", "balanced-all-clips"):
        by_creator = [value(card, f"{figure}: {name}") for name in ("Veo", "Sora")]
        assert value(card, figure) == pytest.approx(sum(by_creator) / 2)


def test_all_clips_count_unread_answers_and_failures_as_not_right() -> None:
    card = compute_reality_scorecard([*REAL, *VEO, *SORA], seed=1)
    assert value(card, "pooled-all-clips: Veo") == pytest.approx(100 * (8 + 3) / (12 + 10))
    assert value(card, "balanced-all-clips: Sora") == pytest.approx(100 * (8 / 12 + 4 / 8) / 2)
    assert str(metric(card, "pooled: Veo").coverage) == "18/21 parsed"
    assert str(metric(card, "pooled-all-clips: Veo").coverage) == "18/22 parsed"


def test_failures_and_unread_answers_are_counted() -> None:
    card = compute_reality_scorecard([*REAL, *VEO, *SORA], seed=1)
    assert card.failures == {"worker-died": 4}
    assert card.unparsed == {"label: malformed": 3}


def test_the_scorer_and_the_plain_formulas_agree() -> None:
    card = compute_reality_scorecard([*REAL, *VEO], seed=1)
    counts = {"real_correct": 8, "n_real": 10, "fake_correct": 3, "n_fake": 8}
    assert value(card, "pooled: Veo") == pytest.approx(compute_pooled_accuracy(**counts))
    assert value(card, "balanced: Veo") == pytest.approx(compute_balanced_accuracy(**counts))
    assert value(card, "pooled") == pytest.approx(compute_pooled_accuracy(**counts))


def test_a_reviewer_that_always_says_real_is_balanced_at_half() -> None:
    always = [*rows("r", Real(), (Label.REAL, 30)), *rows("v", Generated("Veo"), (Label.REAL, 10))]
    card = compute_reality_scorecard(always, seed=1)
    assert value(card, "balanced") == pytest.approx(50)
    assert value(card, "pooled") == pytest.approx(75)
    assert value(card, "answered-real") == 100
    assert value(card, "caught: Veo") == 0


def test_one_side_alone_is_no_game() -> None:
    only_real = compute_reality_scorecard(REAL, seed=1)
    assert only_real["pooled"] == Unmeasured("there is nothing to compare")
    assert value(only_real, "real-accuracy") == 80
    only_fake = compute_reality_scorecard(VEO, seed=1)
    assert only_fake["pooled: Veo"] == Unmeasured("no valid answer for real clips")
    assert value(only_fake, "caught: Veo") == pytest.approx(37.5)


def test_a_creator_whose_questions_all_failed_is_not_silently_left_out() -> None:
    lost = rows("x", Generated("Lost"), (FAILED, 5))
    card = compute_reality_scorecard([*REAL, *VEO, *lost], seed=1)
    assert card["pooled: Lost"] == Unmeasured("no valid answer for clips of Lost")
    assert card["pooled"] == Unmeasured("no valid answer for clips of Lost")
    assert card["caught: Lost"] == Unmeasured("no rows")
    assert value(card, "pooled-all-clips: Lost") == pytest.approx(100 * 8 / 17)


def test_answers_on_one_clip_are_drawn_together() -> None:
    real = rows("r", Real(), (Label.REAL, 20), (Label.GENERATED, 20))
    fake = rows("v", Generated("Veo"), (Label.REAL, 20), (Label.GENERATED, 20))
    once, thrice = (
        compute_reality_scorecard([*real, *fake], seed=3),
        compute_reality_scorecard([*real, *fake] * 3, seed=3),
    )
    for name in ("balanced", "pooled"):
        alone, repeated = once[name], thrice[name]
        assert isinstance(alone, Estimate)
        assert isinstance(repeated, Estimate)
        assert repeated.high - repeated.low == pytest.approx(alone.high - alone.low, rel=0.2)


def test_printed_cells_follow_from_their_counts(shared: Path) -> None:
    tables = json.loads((shared / "published" / "goldens.json").read_text(encoding="utf-8"))
    cells = [
        cell
        for cell in tables["video_reality_test"]["table2"]
        if cell.get("status") == "ok" and "real_n" in cell
    ]
    for cell in cells[:6]:
        right, wrong = cell["real_correct"], cell["real_n"] - cell["real_correct"]
        caught, missed = cell["fake_correct"], cell["fake_n"] - cell["fake_correct"]
        card = compute_reality_scorecard(
            [
                *rows("r", Real(), (Label.REAL, right), (Label.GENERATED, wrong)),
                *rows("f", Generated("X"), (Label.GENERATED, caught), (Label.REAL, missed)),
            ],
            seed=1,
        )
        assert float(round_as_printed(value(card, "pooled"), 2)) == pytest.approx(
            cell["printed"], abs=0.011
        )
    assert cells


def test_few_clips_of_a_creator_leave_doubt_even_when_all_were_caught() -> None:
    few = rows("k", Generated("Kling"), (Label.GENERATED, 3))
    measured = compute_reality_scorecard([*REAL, *few], seed=1)["balanced: Kling"]
    assert isinstance(measured, Estimate)
    assert measured.value == pytest.approx(90)
    assert measured.low < 65
    assert measured.n == 10 + 3


def test_a_setting_is_part_of_who_made_the_clip() -> None:
    rows = [
        ScoredQuestion(
            subject=ClipId(digest("clip", setting, str(number))),
            truth=Generated("Veo", setting) if setting else Real(),
            outcome=RealityVerdict(label=Label.GENERATED if setting == "text" else Label.REAL),
        )
        for setting in ("", "text", "image")
        for number in range(20)
    ]
    card = compute_reality_scorecard(rows, seed=0)
    found = {metric.name: metric.value for metric in card.metrics}
    assert found["caught: Veo/text"].value == 100
    assert found["caught: Veo/image"].value == 0
    assert found["caught: Veo"].value == 50
    assert found["pooled: Veo/text"].value == 100
    assert found["pooled"].value == pytest.approx(found["pooled: Veo"].value)
    assert "pooled: Veo/" not in found


def test_a_draw_without_a_clip_of_the_only_creator_has_no_figure() -> None:
    """It would be divided by no creator, and count as 0."""
    few = [*rows("r", Real(), (Label.REAL, 4)), *rows("g", Generated("Veo"), (Label.GENERATED, 4))]
    twice = [*few, *few]
    measured = compute_reality_scorecard(twice, seed=0)["balanced"]
    assert isinstance(measured, Estimate)
    assert (measured.value, measured.low > 40) == (100, True)


def test_accuracy_and_f1_count_every_clip_alike() -> None:
    card = compute_reality_scorecard([*REAL, *VEO, *SORA], seed=1)
    assert value(card, "accuracy") == pytest.approx(100 * (8 + 3 + 4) / (10 + 8 + 5))
    assert value(card, "accuracy-all-clips") == pytest.approx(100 * (8 + 3 + 4) / 30)
    assert value(card, "f1") == pytest.approx(100 * 2 * 7 / (2 * 7 + 2 + 6))
    assert value(card, "f1-all-clips") == pytest.approx(100 * 2 * 7 / (2 * 7 + 2 + 11))
    assert str(metric(card, "accuracy").coverage) == "23/26 parsed"
    assert str(metric(card, "f1-all-clips").coverage) == "23/30 parsed"


def test_the_confusion_adds_up_to_the_answers() -> None:
    card = compute_reality_scorecard([*REAL, *VEO, *SORA], seed=1)
    assert card.confusion == {
        "generated called generated": 7,
        "generated called real": 6,
        "real called generated": 2,
        "real called real": 8,
        "generated unread": 2,
        "real unread": 1,
    }
    assert sum(card.confusion.values()) == card.n_answered
    assert "generated called real: 6" in str(card)
    assert "generated called real" in card._repr_html_()


def test_a_confusion_tells_what_never_happened() -> None:
    assert compute_reality_scorecard(rows("r", Real(), (Label.REAL, 3)), seed=1).confusion == {
        "generated called generated": 0,
        "generated called real": 0,
        "real called generated": 0,
        "real called real": 3,
    }


def sure(
    name: str, origin: Origin, *said: tuple[Label, float | Unparsed | None]
) -> list[RealityRow]:
    return [
        ScoredQuestion(
            subject=ClipId(f"{name}{i}"),
            truth=origin,
            outcome=RealityVerdict(label=label, confidence=confidence),
        )
        for i, (label, confidence) in enumerate(said)
    ]


def test_scores_come_from_the_label_and_its_confidence() -> None:
    real = sure("r", Real(), *[(Label.REAL, 90.0), (Label.REAL, 60.0), (Label.GENERATED, 70.0)] * 7)
    fake = sure("g", Generated("Veo"), *[(Label.GENERATED, 80.0), (Label.REAL, 60.0)] * 7)
    card = compute_reality_scorecard([*real, *fake], seed=1)
    # P(generated): real 0.1, 0.4, 0.7; generated 0.8, 0.4. Of six pairs 4 are ordered and 1 is tied.
    assert value(card, "auc") == pytest.approx(4.5 / 6)
    assert value(card, "tpr-at-fpr-5") == pytest.approx(50)
    squares = 7 * (0.1**2 + 0.4**2 + 0.7**2) + 7 * ((1 - 0.8) ** 2 + (1 - 0.4) ** 2)
    assert value(card, "brier") == pytest.approx(squares / 35)
    assert isinstance(card["ece"], Estimate)
    assert card["tpr-at-fpr-1"] == Unmeasured(
        "1 % of false alarms need 100 real clips, here are 21"
    )


@given(st.decimals(0, 100, places=2))
def test_doubting_real_is_believing_generated(confidence: Decimal) -> None:
    doubts = RealityVerdict(label=Label.REAL, confidence=float(confidence))
    believes = RealityVerdict(label=Label.GENERATED, confidence=float(100 - confidence))
    assert doubts.p_generated == believes.p_generated == pytest.approx(1 - float(confidence) / 100)


def test_a_missing_confidence_is_a_failure_of_that_part_only() -> None:
    real = sure("r", Real(), *[(Label.REAL, 90.0)] * 8, *[(Label.REAL, UNREAD)] * 2)
    fake = sure("g", Generated("Veo"), *[(Label.GENERATED, 80.0)] * 8)
    card = compute_reality_scorecard([*real, *fake], seed=1)
    assert card.unparsed == {"confidence: malformed": 2}
    assert value(card, "accuracy") == 100
    assert metric(card, "accuracy").value.n == 18
    assert str(metric(card, "auc").coverage) == "16/18 parsed"


def test_without_a_confidence_there_is_no_score_to_order_clips_by() -> None:
    card = compute_reality_scorecard([*REAL, *VEO], seed=1)
    for name in ("auc", "tpr-at-fpr-5", "tpr-at-fpr-1", "brier", "ece"):
        assert card[name] == Unmeasured("no confidence was asked for")
