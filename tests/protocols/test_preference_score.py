import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.benchmarks.pairing import balance_pair_order
from unreel.core.clip import ClipId
from unreel.core.estimate import Estimate, Metric, Scorecard
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Pair
from unreel.core.verdict import Position, PreferenceVerdict, Unparsed, UnparsedReason
from unreel.protocols.preference.scorer import PreferenceRow, compute_preference_scorecard
from unreel.protocols.protocol import ScoredQuestion

FIRST, SECOND = Position.FIRST, Position.SECOND
UNREAD = Unparsed(UnparsedReason.MALFORMED, "both")
FAILED = Failure(FailureReason.OUT_OF_TIME, "slow")
Outcome = Position | Unparsed | Failure


def rows(name: str, real_position: Position, *counts: tuple[Outcome, int]) -> list[PreferenceRow]:
    made = []
    outcomes = [outcome for outcome, n in counts for _ in range(n)]
    for i, outcome in enumerate(outcomes):
        clips = (ClipId(f"{name}{i}"), ClipId(f"{name}{i}-made"))
        pair = Pair(*clips) if real_position is FIRST else Pair(*reversed(clips))
        said = outcome if isinstance(outcome, Failure) else PreferenceVerdict(real=outcome)
        made.append(ScoredQuestion(subject=pair, truth=real_position, outcome=said))
    return made


def value(scorecard: Scorecard, name: str) -> float:
    measured = scorecard[name]
    assert isinstance(measured, Estimate), f"{name}: {measured}"
    return measured.value


def metric(scorecard: Scorecard, name: str) -> Metric:
    return next(each for each in scorecard.metrics if each.name == name)


def test_a_table_computed_by_hand() -> None:
    card = compute_preference_scorecard(
        [
            *rows("a", FIRST, (FIRST, 9), (SECOND, 1), (UNREAD, 2)),
            *rows("b", SECOND, (SECOND, 2), (FIRST, 3), (FAILED, 1)),
        ],
        seed=1,
    )
    assert (card.n_questions, card.n_answered) == (18, 17)
    assert value(card, "real-first-accuracy") == pytest.approx(90)
    assert value(card, "real-second-accuracy") == pytest.approx(40)
    assert value(card, "accuracy") == pytest.approx(65)
    assert value(card, "pooled") == pytest.approx(100 * 11 / 15)
    assert value(card, "pooled-all-pairs") == pytest.approx(100 * 11 / 18)
    assert value(card, "position-bias") == pytest.approx(25)
    assert card.failures == {"out-of-time": 1}
    assert card.unparsed == {"real: malformed": 2}
    assert str(metric(card, "accuracy").coverage) == "15/17 parsed"
    assert str(metric(card, "pooled-all-pairs").coverage) == "15/18 parsed"


@pytest.mark.parametrize(("always", "bias"), [(FIRST, 50), (SECOND, -50)])
def test_a_reviewer_that_looks_only_at_the_place_is_right_half_of_the_time(
    always: Position, bias: float
) -> None:
    # Three times as many pairs show the real clip first: the balanced figure is not fooled.
    card = compute_preference_scorecard(
        [*rows("a", FIRST, (always, 30)), *rows("b", SECOND, (always, 10))], seed=1
    )
    assert value(card, "accuracy") == pytest.approx(50)
    assert value(card, "position-bias") == pytest.approx(bias)


@given(st.integers(0, 30), st.integers(0, 10**6))
def test_half_of_the_pairs_show_the_real_clip_first(n: int, seed: int) -> None:
    pairs = [(ClipId(f"r{i}"), ClipId(f"g{i}")) for i in range(n)]
    shown = balance_pair_order(pairs, seed=seed)
    first = sum(position is FIRST for _, position in shown)
    assert abs(2 * first - n) <= 1
    for (real, generated), (pair, position) in zip(pairs, shown, strict=True):
        assert {pair.first, pair.second} == {real, generated}
        assert (pair.first == real) == (position is FIRST)
    assert shown == balance_pair_order(pairs, seed=seed)


def test_another_seed_gives_another_order_and_an_odd_pair_has_no_fixed_side() -> None:
    pairs = [(ClipId(f"r{i}"), ClipId(f"g{i}")) for i in range(9)]
    orders = [
        tuple(position for _, position in balance_pair_order(pairs, seed=seed))
        for seed in range(20)
    ]
    assert len(set(orders)) > 10
    assert {order.count(FIRST) for order in orders} == {4, 5}
