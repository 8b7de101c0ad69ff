from itertools import combinations

import pytest
from scipy import stats as reference

from unreel.core.clip import ClipId
from unreel.core.estimate import Estimate, Metric, Scorecard, Unmeasured
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import ErrorFamily, Rating
from unreel.core.verdict import RealismVerdict, Unparsed, UnparsedReason
from unreel.protocols.protocol import ScoredQuestion
from unreel.protocols.realism.scorer import RealismRow, compute_realism_scorecard

MISSING = Unparsed(UnparsedReason.MISSING)
FAILED = Failure(FailureReason.UNDECODABLE, "broken")


def row(
    clip: str,
    human: int,
    given: int | Unparsed | Failure,
    similarity: float | None = None,
    problem: str | Unparsed = MISSING,
) -> RealismRow:
    outcome = (
        given
        if isinstance(given, Failure)
        else RealismVerdict(score=given, problem=problem, adherence=MISSING)
    )
    truth = Rating(score=human, problem="a person's words")
    return ScoredQuestion(subject=ClipId(clip), truth=truth, outcome=outcome, text_score=similarity)


def value(scorecard: Scorecard, name: str) -> float:
    measured = scorecard[name]
    assert isinstance(measured, Estimate), f"{name}: {measured}"
    return measured.value


def metric(scorecard: Scorecard, name: str) -> Metric:
    return next(each for each in scorecard.metrics if each.name == name)


def pcr(human: list[int], given: list[int]) -> float:
    pairs = [(i, j) for i, j in combinations(range(len(human)), 2) if human[i] != human[j]]
    return sum((human[i] - human[j]) * (given[i] - given[j]) > 0 for i, j in pairs) / len(pairs)


HUMAN = [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
GIVEN = [1, 2, 2, 3, 3, 3, 3, 5, 4, 5]


def test_figures_against_plain_formulas() -> None:
    rows = [row(f"c{i}", *pair) for i, pair in enumerate(zip(HUMAN, GIVEN, strict=True))]
    card = compute_realism_scorecard(rows, seed=1)
    assert value(card, "plcc") == pytest.approx(reference.pearsonr(HUMAN, GIVEN).statistic)
    assert value(card, "srocc") == pytest.approx(reference.spearmanr(HUMAN, GIVEN).statistic)
    assert value(card, "pcr") == pytest.approx(pcr(HUMAN, GIVEN))
    for name in ("plcc", "srocc", "pcr"):
        assert value(card, name + "-impute-3") == pytest.approx(value(card, name))


def test_a_predicted_tie_disagrees() -> None:
    rows = [row(f"c{i}", human, given) for i, (human, given) in enumerate([(1, 2), (2, 2), (3, 4), (4, 5), (5, 5), (5, 5), (1, 1)])]  # fmt: skip
    human, given = [1, 2, 3, 4, 5, 5, 1], [2, 2, 4, 5, 5, 5, 1]
    assert value(compute_realism_scorecard(rows, seed=1), "pcr") == pytest.approx(pcr(human, given))


def test_unreadable_scores_are_left_out_or_taken_for_3() -> None:
    rows = [row(f"c{i}", *pair) for i, pair in enumerate(zip(HUMAN, GIVEN, strict=True))]
    unread = [row("u1", 1, Unparsed(UnparsedReason.OUT_OF_RANGE, "7")), row("u2", 5, MISSING)]
    card = compute_realism_scorecard([*rows, *unread], seed=1)
    assert value(card, "plcc") == pytest.approx(reference.pearsonr(HUMAN, GIVEN).statistic)
    imputed = reference.pearsonr([*HUMAN, 1, 5], [*GIVEN, 3, 3]).statistic
    assert value(card, "plcc-impute-3") == pytest.approx(imputed)
    assert value(card, "pcr-impute-3") == pytest.approx(pcr([*HUMAN, 1, 5], [*GIVEN, 3, 3]))
    assert card.unparsed["score: out-of-range"] == 1
    assert card.unparsed["score: missing"] == 1
    for name in ("plcc", "srocc", "pcr", "plcc-impute-3"):
        assert str(metric(card, name).coverage) == "10/12 parsed"


def test_a_constant_reviewer_correlates_with_nothing() -> None:
    card = compute_realism_scorecard(
        [row(f"c{i}", human, 3) for i, human in enumerate(HUMAN)], seed=1
    )
    assert isinstance(card["plcc"], Unmeasured)
    assert value(card, "pcr") == 0


def test_similarity_is_the_mean_over_answers_with_reasons() -> None:
    rows = [
        row("a", 1, 1, 0.8, "floats"),
        row("b", 2, 2, 0.4, "melts"),
        row("c", 3, 3, None, "blurs"),  # not compared yet
        row("d", 4, 4, 0.9),  # says no reason: the similarity cannot be of it
        row("e", 5, FAILED, 0.1),
    ]
    card = compute_realism_scorecard(rows, seed=1)
    similar = card["sts"]
    assert isinstance(similar, Estimate)
    assert similar.value == pytest.approx(0.6)
    assert similar.n == 2
    assert str(metric(card, "sts").coverage) == "3/4 parsed"


def seen(clip: int, family: ErrorFamily | None, said: object) -> RealismRow:
    verdict = RealismVerdict(score=1 + clip % 5, problem="", adherence="", family=said)
    return ScoredQuestion(
        subject=ClipId(f"{clip}"),
        truth=Rating(score=1 + clip // 2 % 5, family=family),
        outcome=verdict,
    )


def test_families_of_errors_are_compared_with_peoples_and_scored_apart() -> None:
    human, objects = ErrorFamily.HUMAN_STATES, ErrorFamily.OBJECT_STATES
    rows = [
        *(seen(i, human, human) for i in range(10)),
        *(seen(i, objects, human if i % 2 else objects) for i in range(10, 20)),
        *(seen(i, human, MISSING) for i in range(20, 23)),
        *(seen(i, None, "none") for i in range(23, 30)),
    ]
    card = compute_realism_scorecard(rows, seed=1)
    assert value(card, "family") == pytest.approx(100 * 15 / 20)
    assert str(metric(card, "family").coverage) == "20/23 parsed"
    assert card.unparsed["family: missing"] == 3
    assert metric(card, "srocc: family=human-states").coverage.asked == 13
    assert value(card, "srocc: family=object-states") == value(
        compute_realism_scorecard(rows[10:20], seed=1), "srocc"
    )


def test_low_scores_tell_generated_clips_from_real_ones() -> None:
    def of(clip: str, creator: str, given: int | Unparsed) -> RealismRow:
        verdict = RealismVerdict(score=given, problem="", adherence="")
        truth = Rating(score=3)
        return ScoredQuestion(subject=ClipId(clip), truth=truth, outcome=verdict, creator=creator)

    real = [of(f"r{i}", "", 5 if i < 15 else 3) for i in range(20)]
    made = [of(f"g{i}", "Veo", 1 if i < 6 else 3) for i in range(10)]
    card = compute_realism_scorecard([*real, *made, of("u", "Veo", MISSING)], seed=1)
    assert value(card, "auc") == pytest.approx((6 * 20 + 4 * 15 + 4 * 5 / 2) / (10 * 20))
    assert value(card, "tpr-at-fpr-5") == pytest.approx(60)
    assert isinstance(card["tpr-at-fpr-1"], Unmeasured)
    assert str(metric(card, "auc").coverage) == "30/31 parsed"
    assert isinstance(compute_realism_scorecard(made, seed=1)["auc"], Unmeasured)
