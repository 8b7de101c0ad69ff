"""Strengths from battles."""

import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from unreel.core.errors import InvalidValueError, MissingExtraError
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.stats import resampling
from unreel.stats.ranking import BattleOutcome, ClipBattle, bradley_terry

Estimated = Callable[[Measured], Estimate]
FIRST, SECOND, TIE = BattleOutcome.FIRST, BattleOutcome.SECOND, BattleOutcome.TIE


@pytest.fixture(autouse=True, scope="module")
def few_resamples() -> Iterator[None]:
    """Resample 100 times: only the test of widths depends on the number."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resampling, "RESAMPLES", 100)
        yield


def _fight(rng: np.random.Generator, strengths: Sequence[float], n: int) -> list[ClipBattle]:
    """Battles between random pairs; one in ten is a tie. Two battles share a clip."""
    battles = []
    for number in range(n):
        a, b = rng.choice(len(strengths), 2, replace=False)
        wins = rng.random() < 1 / (1 + math.exp(strengths[b] - strengths[a]))
        outcome = TIE if rng.random() < 0.1 else FIRST if wins else SECOND
        battles.append(ClipBattle(f"m{a}", f"m{b}", outcome, f"clip-{number // 2}"))
    return battles


def _likeliest(battles: Sequence[ClipBattle]) -> dict[str, float]:
    """Strengths of greatest likelihood, by a general optimiser; a tie is half a win for both."""
    names = sorted({name for b in battles for name in (b.first, b.second)})
    first = np.array([names.index(b.first) for b in battles])
    second = np.array([names.index(b.second) for b in battles])
    points = np.array([{FIRST: 1.0, TIE: 0.5, SECOND: 0.0}[b.outcome] for b in battles])

    def surprise(strengths: np.ndarray) -> float:
        gap = strengths[first] - strengths[second]
        terms = points * np.logaddexp(0, -gap) + (1 - points) * np.logaddexp(0, gap)
        return float(terms.sum())

    found = minimize(surprise, np.zeros(len(names)), method="BFGS", options={"gtol": 1e-6}).x
    return dict(zip(names, found - found.mean(), strict=True))


def test_strengths_are_the_likeliest_ones(estimated: Estimated, rng: np.random.Generator) -> None:
    battles = _fight(rng, [1.0, 0.3, -0.2, -1.1], 600)
    ranking = bradley_terry(battles, seed=1)
    for name, strength in _likeliest(battles).items():
        assert estimated(ranking[name]).value == pytest.approx(strength, abs=1e-4)


def test_strengths_sum_to_zero_and_come_by_name(
    estimated: Estimated, rng: np.random.Generator
) -> None:
    ranking = bradley_terry(_fight(rng, [0.5, 0.0, -0.5], 300), seed=1)
    assert list(ranking) == ["m0", "m1", "m2"]
    assert sum(estimated(one).value for one in ranking.values()) == pytest.approx(0, abs=1e-9)


def test_a_strength_gap_is_the_log_odds_of_winning(estimated: Estimated) -> None:
    battles = [ClipBattle("a", "b", FIRST if i % 4 else SECOND, f"{i}") for i in range(40)]
    ranking = bradley_terry(battles, seed=1)
    gap = estimated(ranking["a"]).value - estimated(ranking["b"]).value
    assert gap == pytest.approx(math.log(3))
    elo = estimated(ranking["a"]).scaled(400 / math.log(10)).value
    assert 2 * elo == pytest.approx(190.8, abs=0.1)  # 3 to 1 in Elo's points


def test_ties_pull_together(estimated: Estimated) -> None:
    won = [ClipBattle("a", "b", FIRST if i % 4 else SECOND, f"{i}") for i in range(40)]
    tied = [ClipBattle("a", "b", TIE, f"tie-{i}") for i in range(40)]
    apart = estimated(bradley_terry(won, seed=1)["a"])
    closer = estimated(bradley_terry(won + tied, seed=1)["a"])
    assert 2 * closer.value == pytest.approx(math.log((30 + 20) / (10 + 20)))
    assert 0 < closer.value < apart.value
    assert (apart.n, closer.n) == (40, 80)


def test_who_is_named_first_changes_nothing(rng: np.random.Generator) -> None:
    battles = _fight(rng, [0.4, 0.0, -0.4], 120)
    turned = {FIRST: SECOND, SECOND: FIRST, TIE: TIE}
    mirrored = [ClipBattle(b.second, b.first, turned[b.outcome], b.clip) for b in reversed(battles)]
    assert bradley_terry(battles, seed=1) == bradley_terry(mirrored, seed=1)


def test_battles_over_one_clip_are_drawn_together(
    estimated: Estimated, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resampling, "RESAMPLES", 1_000)
    battles = [
        ClipBattle("a", "b", FIRST if rng.random() < 0.6 else SECOND, f"{i}") for i in range(100)
    ]
    repeated = [battle for battle in battles for _ in range(5)]
    apart = [ClipBattle(b.first, b.second, b.outcome, f"{i}") for i, b in enumerate(repeated)]
    widths = []
    for some in (battles, repeated, apart):
        strength = estimated(bradley_terry(some, seed=1)["a"])
        widths.append(strength.high - strength.low)
    assert widths[1] == pytest.approx(widths[0], rel=0.1)
    assert widths[2] == pytest.approx(widths[0] / math.sqrt(5), rel=0.1)


def test_the_seed_alone_decides(rng: np.random.Generator) -> None:
    battles = _fight(rng, [0.5, -0.5, 0.0], 100)
    assert bradley_terry(battles, seed=1) == bradley_terry(battles, seed=1)
    assert bradley_terry(battles, seed=1) != bradley_terry(battles, seed=2)


def test_groups_that_never_met_have_no_common_scale() -> None:
    battles = [
        ClipBattle(a, b, outcome, f"{a}{outcome}{i}")
        for a, b in (("a", "b"), ("c", "d"))
        for outcome in BattleOutcome
        for i in range(9)
    ]
    ranking = bradley_terry(battles, seed=1)
    assert set(ranking.values()) == {Unmeasured("no battle links a, b with c, d")}


def test_a_long_list_of_names_is_cut() -> None:
    names = "bcdefgh"
    battles = [
        ClipBattle(first, second, TIE, first + second)
        for first, second in [*((names[0], other) for other in names[1:]), ("x", "y")]
    ]
    reason = bradley_terry(battles, seed=1)["b"]
    assert reason == Unmeasured("no battle links b, c, d, e, f, ... with x, y")


def test_who_never_lost_has_no_strength() -> None:
    battles = [
        *(ClipBattle("best", other, FIRST, f"{other}{i}") for other in "ab" for i in range(9)),
        *(ClipBattle("a", "b", outcome, f"ab{outcome}") for outcome in BattleOutcome),
    ]
    ranking = bradley_terry(battles, seed=1)
    assert ranking.keys() == {"a", "b", "best"}
    reason = "best never lost or tied against the others, so strengths have no limit"
    assert set(ranking.values()) == {Unmeasured(reason)}


def test_a_single_lost_battle_carries_no_interval() -> None:
    battles = [ClipBattle("a", "b", FIRST, f"{i}") for i in range(30)]
    ranking = bradley_terry([*battles, ClipBattle("a", "b", SECOND, "last")], seed=1)
    reason = ranking["a"]
    assert isinstance(reason, Unmeasured)
    assert "resamples have no value" in reason.why


def test_battles_over_few_clips_are_unmeasured() -> None:
    battles = [ClipBattle("a", "b", outcome, "clip") for outcome in BattleOutcome]
    reason = bradley_terry(battles, seed=1)["a"]
    assert isinstance(reason, Unmeasured)
    assert "needs 6 clips, here are 1" in reason.why


def test_a_chain_too_long_to_settle_is_unmeasured() -> None:
    names = [f"{place:03}" for place in range(60)]
    battles = [
        ClipBattle(stronger, weaker, outcome, f"{stronger}-{turn}")
        for stronger, weaker in pairwise(names)
        for turn, outcome in enumerate([FIRST] * 30 + [SECOND])
    ]
    assert set(bradley_terry(battles, seed=1).values()) == {
        Unmeasured("one side nearly always wins, so strengths do not settle")
    }


def test_no_battles_rank_nobody() -> None:
    assert bradley_terry([], seed=1) == {}


def test_a_battle_needs_two_competitors() -> None:
    with pytest.raises(InvalidValueError, match="competitors of a battle must differ"):
        ClipBattle("a", "a", TIE, "clip")


@settings(max_examples=15)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ab", "bc", "ca"]), st.sampled_from(BattleOutcome), st.integers(0, 15)
        ),
        min_size=1,
        max_size=60,
    )
)
def test_any_battles_give_strengths_or_reasons(
    results: list[tuple[str, BattleOutcome, int]],
) -> None:
    battles = [ClipBattle(pair[0], pair[1], outcome, f"{clip}") for pair, outcome, clip in results]
    ranking = bradley_terry(battles, seed=1)
    assert ranking.keys() == set("".join(pair for pair, _, _ in results))
    values = [one.value for one in ranking.values() if isinstance(one, Estimate)]
    assert len(values) in (0, len(ranking))
    assert sum(values) == pytest.approx(0, abs=1e-9)


def test_importing_the_statistics_loads_neither_evalica_nor_pandas() -> None:
    code = (
        "import sys, unreel.stats.ranking, unreel.stats.agreement, unreel.stats.detection_metrics, "
        "unreel.stats.paired_differences; print(*{m.partition('.')[0] for m in sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert {"evalica", "pandas", "sklearn", "krippendorff"}.isdisjoint(run.stdout.split())


def test_a_missing_evalica_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "evalica", None)
    battles = [
        ClipBattle("a", "b", outcome, f"{outcome}{i}")
        for outcome in BattleOutcome
        for i in range(9)
    ]
    with pytest.raises(MissingExtraError, match=r"unreel\[eval\]"):
        bradley_terry(battles, seed=1)
