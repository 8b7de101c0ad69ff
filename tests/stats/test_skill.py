"""The skill model finds what is known, agrees with others' fits, and says what it cannot know."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.optimize import minimize

from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Estimate, Unmeasured
from unreel.stats.skill_likelihood import (
    REAL,
    EqualProbabilityCounts,
    SkillAnswerColumns,
    SkillTermLayout,
)
from unreel.stats.skill_model import (
    SkillModelPrior,
    estimate_skill_intervals,
    fit_skill_terms,
    standardise_columns,
)

RECOVERY = Path(__file__).parents[2] / "benchmarks" / "skill_recovery.py"


@pytest.fixture(scope="module")
def recovery() -> ModuleType:
    spec = importlib.util.spec_from_file_location("skill_recovery", RECOVERY)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["skill_recovery"] = module
    spec.loader.exec_module(module)
    return module


def _answers(*rows: tuple[int, int, int, int]) -> SkillAnswerColumns:
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return SkillAnswerColumns(
        reviewer=columns[0],
        creator=columns[1],
        scene=columns[2],
        generated=columns[3].astype(bool),
        nuisance=np.zeros((len(rows), 0)),
    )


def _drawn(
    n_reviewers: int, n_creators: int, n_scenes: int, *, nuisances: int = 0, seed: int = 0
) -> SkillAnswerColumns:
    rng = np.random.default_rng(seed)
    bias, ability = rng.normal(-1, 0.5, n_reviewers), rng.normal(2, 1, n_reviewers)
    realism = rng.normal(0, 1, n_creators)
    grid = np.meshgrid(
        np.arange(n_reviewers), np.arange(REAL, n_creators), np.arange(n_scenes), indexing="ij"
    )
    reviewer, creator, scene = (column.ravel() for column in grid)
    nuisance = rng.normal(size=(n_creators + 1, n_scenes, nuisances))[creator + 1, scene]
    odds = bias[reviewer] + np.where(creator == REAL, 0, ability[reviewer] - realism[creator])
    odds = odds + 0.8 * nuisance.sum(axis=1)
    said = rng.random(len(odds)) < 1 / (1 + np.exp(-odds))
    return SkillAnswerColumns(
        reviewer=reviewer, creator=creator, scene=scene, generated=said, nuisance=nuisance
    )


def test_it_ranks_abilities_and_realism_as_they_are_where_raw_means_do_not(
    recovery: ModuleType,
) -> None:
    every = recovery.try_world(recovery.World(), runs=6)
    some = recovery.try_world(recovery.World(missing=True), runs=6)
    for found in (every, some):
        assert found["ability: rank correlation"] >= 0.98
        assert found["realism: rank correlation"] >= 0.98
    assert some["raw ability: rank correlation"] < some["ability: rank correlation"] - 0.15
    assert some["raw realism: rank correlation"] < some["realism: rank correlation"] - 0.4


def test_its_intervals_hold_the_truth(recovery: ModuleType) -> None:
    """160 intervals of each kind, some tied to each other: a little more room than 92 to 98 of 100."""
    for world in (recovery.World(), recovery.World(missing=True)):
        found = recovery.try_world(world, runs=8)
        for name in ("ability", "realism", "bias"):
            assert 0.88 <= found[f"{name}: held"] <= 1.0


def test_a_fit_without_guess_floor_and_prior_is_the_binomial_glm_of_statsmodels() -> None:
    sm = pytest.importorskip("statsmodels.api")
    answers, shape = _drawn(4, 5, 60, nuisances=1), SkillTermLayout(4, 5, 1)
    made = answers.creator != REAL
    columns = [answers.reviewer == place for place in range(4)]
    columns += [(answers.reviewer == place) & made for place in range(4)]
    # Realism of the last creator is minus the sum of the others.
    last = answers.creator == 4
    columns += [-((answers.creator == place) * 1.0 - last) for place in range(4)]
    design = np.column_stack([*columns, answers.nuisance]).astype(float)
    reference = sm.GLM(answers.generated.astype(float), design, family=sm.families.Binomial()).fit()
    ours = fit_skill_terms(answers, shape, model=SkillModelPrior(guess=0.0, spread=1e4)).terms
    found = np.concatenate([ours.bias, ours.ability, ours.realism[:4], ours.sway])
    assert found == pytest.approx(reference.params, abs=1e-3)


def test_its_sandwich_is_that_of_statsmodels_by_scene() -> None:
    sm = pytest.importorskip("statsmodels.api")
    answers, shape = _drawn(3, 1, 80), SkillTermLayout(3, 1)
    made = answers.creator != REAL
    columns = [answers.reviewer == place for place in range(3)]
    columns += [(answers.reviewer == place) & made for place in range(3)]
    design = np.column_stack(columns).astype(float)
    said = answers.generated.astype(float)
    model = sm.GLM(said, design, family=sm.families.Binomial())
    by_scene = model.fit(
        cov_type="cluster", cov_kwds={"groups": answers.scene, "use_correction": False}
    ).bse * np.sqrt(80 / 79)
    bare = model.fit().bse
    ours = fit_skill_terms(answers, shape, model=SkillModelPrior(guess=0.0, spread=1e4)).errors
    found = np.concatenate([ours.bias, ours.ability])
    assert found == pytest.approx(np.maximum(by_scene, bare), rel=1e-3)


def test_a_fit_with_guess_floor_and_prior_is_the_summit_that_another_climber_finds() -> None:
    answers, shape = _drawn(4, 4, 40), SkillTermLayout(4, 4)
    rows, guess, spread = EqualProbabilityCounts.of(answers, shape), 0.05, 2.0

    def below(terms: np.ndarray) -> float:
        return -rows.likelihood(terms, guess) + float(terms @ terms) / (2 * spread**2)

    summit = minimize(below, np.zeros(shape.n_terms), method="BFGS", options={"gtol": 1e-7}).x
    ours = fit_skill_terms(answers, shape, model=SkillModelPrior(guess=guess, spread=spread)).terms
    centre = summit[8:].mean()
    assert ours.bias == pytest.approx(summit[:4], abs=1e-3)
    assert ours.ability == pytest.approx(summit[4:8] - centre, abs=1e-3)
    assert ours.realism == pytest.approx(summit[8:] - centre, abs=1e-3)


def test_counts_and_single_answers_have_one_likelihood() -> None:
    answers, shape = _drawn(3, 4, 20), SkillTermLayout(3, 4)
    terms = np.random.default_rng(1).normal(size=shape.n_terms)
    counted, single = (
        EqualProbabilityCounts.of(answers, shape),
        EqualProbabilityCounts.one_by_one(answers, shape),
    )
    for guess in (0.0, 0.03):
        assert counted.likelihood(terms, guess) == pytest.approx(single.likelihood(terms, guess))
        slopes = [rows.slope(rows.weigh(terms, guess)[0]) for rows in (counted, single)]
        assert slopes[0] == pytest.approx(slopes[1])


@pytest.mark.parametrize("guess", [0.0, 0.04])
def test_slopes_are_those_of_the_likelihood(guess: float) -> None:
    answers, shape = _drawn(3, 3, 15, nuisances=2), SkillTermLayout(3, 3, 2)
    rows = EqualProbabilityCounts.of(answers, shape)
    terms = np.random.default_rng(2).normal(size=shape.n_terms)
    slope = rows.slope(rows.weigh(terms, guess)[0])
    for place in range(shape.n_terms):
        step = np.zeros(shape.n_terms)
        step[place] = 1e-5
        rise = rows.likelihood(terms + step, guess) - rows.likelihood(terms - step, guess)
        assert slope[place] == pytest.approx(rise / 2e-5, abs=1e-4)


def test_a_nuisance_that_sways_everybody_is_told_apart() -> None:
    answers, shape = _drawn(5, 5, 120, nuisances=1, seed=4), SkillTermLayout(5, 5, 1)
    (sway,) = estimate_skill_intervals(answers, shape).sway
    assert isinstance(sway, Estimate)
    assert sway.low <= 0.8 <= sway.high
    assert sway.low > 0.5


def test_a_reviewer_that_never_errs_has_a_finite_ability_and_a_wide_interval() -> None:
    answers = _answers(
        *(
            (0, creator, scene, creator != REAL)
            for creator in range(REAL, 3)
            for scene in range(30)
        ),
        *((1, creator, scene, scene % 2) for creator in range(REAL, 3) for scene in range(30)),
    )
    perfect, coin = estimate_skill_intervals(answers, SkillTermLayout(2, 3)).ability
    assert isinstance(perfect, Estimate)
    assert isinstance(coin, Estimate)
    assert perfect.low > coin.high
    assert perfect.high - perfect.low > coin.high - coin.low
    assert coin.low < 0 < coin.high


@pytest.mark.parametrize("share", [0.0, 0.01])
def test_a_reviewer_that_hardly_varies_has_no_ability_and_the_others_have_theirs(
    recovery: ModuleType, share: float
) -> None:
    found = recovery.try_constant_reviewer(share, runs=5, scenes=60)
    assert found == {
        "constant: unmeasured": 1.0,
        "constant: largest": 0.0,
        "others: unmeasured": 0.0,
    }


def test_reviewers_that_look_are_measured_however_lopsided_their_answers_are() -> None:
    rng = np.random.default_rng(0)
    n_creators = 40
    answers = _answers(
        *((0, c, s, c != REAL) for c in range(REAL, n_creators) for s in range(20)),
        *((1, c, s, rng.random() < 0.4) for c in range(REAL, n_creators) for s in range(20)),
        *((2, REAL, s, s == 0) for s in range(300)),
        *((2, c, s, s < 3) for c in range(10) for s in range(30)),
    )
    seldom = estimate_skill_intervals(answers, SkillTermLayout(3, n_creators)).ability
    assert all(isinstance(one, Estimate) for one in seldom)
    assert seldom[0].low > 0 < seldom[2].low


def test_entrants_that_no_answer_ties_together_are_unmeasured() -> None:
    rng = np.random.default_rng(0)
    answers = _answers(
        *((0, c, s, rng.random() < 0.6) for c in (REAL, 0, 1) for s in range(20)),
        *((1, c, s, rng.random() < 0.6) for c in (REAL, 2) for s in range(20)),
        *((2, c, s, rng.random() < 0.6) for c in (0, 1) for s in range(20)),
        *((3, REAL, s, rng.random() < 0.6) for s in range(20)),
    )
    found = estimate_skill_intervals(answers, SkillTermLayout(5, 4))
    assert isinstance(found.ability[0], Estimate)
    why = [one.why if isinstance(one, Unmeasured) else "" for one in found.ability]
    assert why[1:] == [
        "the reviewer shares no creator with the others",
        "no readable answer about real clips",
        "no readable answer about generated clips",
        "no readable answer about generated clips",
    ]
    assert [isinstance(one, Estimate) for one in found.realism] == [True, True, False, False]
    assert [isinstance(one, Estimate) for one in found.bias] == [True, True, False, True, False]


def test_few_scenes_and_one_creator_say_so() -> None:
    few = estimate_skill_intervals(
        _answers(*((0, c, s, 1) for c in (REAL, 0) for s in range(5))), SkillTermLayout(1, 1)
    )
    assert all(isinstance(one, Unmeasured) for one in (*few.bias, *few.ability, *few.realism))
    alone = estimate_skill_intervals(
        _answers(*((0, c, s, s % 3 > 0) for c in (REAL, 0) for s in range(9))),
        SkillTermLayout(1, 1),
    )
    assert isinstance(alone.ability[0], Estimate)
    assert "one creator alone" in str(alone.realism[0])


def test_what_is_not_known_of_a_clip_counts_as_the_mean() -> None:
    columns = np.array([[1.0, 5.0], [3.0, 5.0], [np.nan, 5.0], [2.0, np.nan]])
    scaled = standardise_columns(columns, [0, 1, 2, 3])
    assert scaled[:, 0].sum() == pytest.approx(0)
    assert scaled[2, 0] == 0
    assert not scaled[:, 1].any()


def test_models_and_columns_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="guess"):
        SkillModelPrior(guess=0.6)
    with pytest.raises(InvalidValueError, match="equally long"):
        SkillAnswerColumns(
            reviewer=np.zeros(2, dtype=np.int64),
            creator=np.zeros(1, dtype=np.int64),
            scene=np.zeros(2, dtype=np.int64),
            generated=np.zeros(2, dtype=bool),
            nuisance=np.zeros((2, 0)),
        )
