import json
from pathlib import Path

import pytest

from unreel.core.clip import ClipId, Generated, Origin, Real
from unreel.core.content_ids import digest
from unreel.core.estimate import Estimate, Metric, Scorecard, Unmeasured
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Label
from unreel.core.verdict import RealityVerdict, Unparsed, UnparsedReason
from unreel.protocols.paper_formulas import round_as_printed
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


def value(scorecard: Scorecard, name: str) -> float:
    measured = scorecard[name]
    assert isinstance(measured, Estimate), f"{name}: {measured}"
    return measured.value


def metric(scorecard: Scorecard, name: str) -> Metric:
    return next(each for each in scorecard.metrics if each.name == name)


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


def test_a_creator_whose_questions_all_failed_is_not_silently_left_out() -> None:
    lost = rows("x", Generated("Lost"), (FAILED, 5))
    card = compute_reality_scorecard([*REAL, *VEO, *lost], seed=1)
    assert card["pooled: Lost"] == Unmeasured("no valid answer for clips of Lost")
    assert card["pooled"] == Unmeasured("no valid answer for clips of Lost")
    assert card["caught: Lost"] == Unmeasured("no rows")
    assert value(card, "pooled-all-clips: Lost") == pytest.approx(100 * 8 / 17)


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


def test_accuracy_and_f1_count_every_clip_alike() -> None:
    card = compute_reality_scorecard([*REAL, *VEO, *SORA], seed=1)
    assert value(card, "accuracy") == pytest.approx(100 * (8 + 3 + 4) / (10 + 8 + 5))
    assert value(card, "accuracy-all-clips") == pytest.approx(100 * (8 + 3 + 4) / 30)
    assert value(card, "f1") == pytest.approx(100 * 2 * 7 / (2 * 7 + 2 + 6))
    assert value(card, "f1-all-clips") == pytest.approx(100 * 2 * 7 / (2 * 7 + 2 + 11))
    assert str(metric(card, "accuracy").coverage) == "23/26 parsed"
    assert str(metric(card, "f1-all-clips").coverage) == "23/30 parsed"


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


def test_a_missing_confidence_is_a_failure_of_that_part_only() -> None:
    real = sure("r", Real(), *[(Label.REAL, 90.0)] * 8, *[(Label.REAL, UNREAD)] * 2)
    fake = sure("g", Generated("Veo"), *[(Label.GENERATED, 80.0)] * 8)
    card = compute_reality_scorecard([*real, *fake], seed=1)
    assert card.unparsed == {"confidence: malformed": 2}
    assert value(card, "accuracy") == 100
    assert metric(card, "accuracy").value.n == 18
    assert str(metric(card, "auc").coverage) == "16/18 parsed"
