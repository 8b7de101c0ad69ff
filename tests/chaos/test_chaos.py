"""Kill -9 of a driver loses no committed row, doubles none and asks none of them again."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra `eval`")

from chaos.harness import Tally, fresh_in
from chaos.kill_driver import kill_drivers
from chaos.trial import Bare, Evaluation, answered, evaluation, undisturbed

pytestmark = pytest.mark.timeout(1200)  # each starts many processes, some of them Ray's
FEW = 24
"""Clips of a short run."""


def _kill_bare_drivers(root: Path, *, kills: int, seed: int, **settings: Any) -> Tally:
    bare, fresh = Bare(**settings), fresh_in(root)
    truth = undisturbed(bare, next(fresh))
    return kill_drivers(bare, fresh, truth=truth, kills=kills, seed=seed)


def test_driver_kills_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    stops = ["asked:15", "written:2", "committed:2"]
    tally = _kill_bare_drivers(tmp_path, n_rows=80, kills=3, seed=2, stops=iter(stops))
    assert (tally.violations, tally.kills) == ([], 3)
    assert set(tally.kills_by_step) == {"asked", "written", "committed"}
    assert tally.asked_again > 0, "nothing was in flight at any kill: the steps are too tame"


@pytest.mark.slow
def test_kills_inside_compaction_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    steps = ("rewritten", "compacted")
    stops = iter(f"{step}:1" for step in steps)
    tally = _kill_bare_drivers(tmp_path, n_rows=160, pace_rows=2, kills=2, seed=1, stops=stops)
    assert (tally.violations, tally.kills) == ([], 2)
    assert set(tally.kills_by_step) == set(steps)


@dataclass
class World:
    """Clips, a server, folders for runs, and what a run that nobody disturbs ends with."""

    trial: Evaluation
    fresh: Iterator[Path]
    truth: object


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """`unreel eval` over a few real clips."""
    root = tmp_path_factory.mktemp("eval")
    fresh = fresh_in(root)
    with evaluation(root, n_clips=FEW) as trial:
        calm = next(fresh)
        truth = undisturbed(trial, calm)
        assert len(answered(trial.rows(calm))) == 2 * FEW
        yield World(trial, fresh, truth)


def _kill_eval(world: World, *, kills: int, **settings: Any) -> Tally:
    trial = replace(world.trial, **settings)
    return kill_drivers(trial, world.fresh, truth=world.truth, kills=kills, seed=1)


def test_a_killed_eval_ends_with_the_scorecard_of_an_undisturbed_one(world: World) -> None:
    stops = ["clips-written:2", "answers-written:2"]
    tally = _kill_eval(world, kills=2, stops=iter(stops))
    assert (tally.violations, tally.kills) == ([], 2)
    assert tally.asked_again > 0, "nothing was in flight at any kill: the steps are too tame"


@pytest.mark.slow
def test_a_kill_while_failures_are_replaced_loses_nothing(world: World) -> None:
    stops = ["answers-committed:1", "answers-written:1"]
    tally = _kill_eval(world, kills=2, retry=True, trusted=True, stops=iter(stops))
    assert (tally.violations, tally.kills) == ([], 2)


@pytest.mark.slow
def test_a_killed_eval_resumes_in_a_store(world: World, s3: Any) -> None:
    stops = iter(["answers-written:2"])
    tally = _kill_eval(world, kills=1, place=s3 / "chaos", trusted=True, stops=stops)
    assert (tally.violations, tally.kills) == ([], 1)


@pytest.mark.slow
def test_a_killed_eval_resumes_on_ray(world: World) -> None:
    pytest.importorskip("ray", reason="needs the extra `ray`")
    stops = iter([f"answers-{step}:1" for step in ("committed", "written") for _ in range(3)])
    how = {"engine": "ray", "most_uncommitted": FEW, "trusted": True}
    tally = _kill_eval(world, kills=6, **how, stops=stops)
    assert (tally.violations, tally.kills) == ([], 6)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_hundred_kills_at_random_steps(world: World, tmp_path: Path) -> None:
    assert _kill_bare_drivers(tmp_path, n_rows=500, kills=100, seed=1).violations == []
    assert _kill_eval(world, kills=100).violations == []
