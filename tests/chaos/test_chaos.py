"""Kill -9 of drivers and workers loses no committed row and doubles none; the control must double.

The default run holds one short test for each contract. The long forms, the controls and what other tests
of the default run catch as well (see `mutations.py`) are marked `slow`.
"""

import importlib.util
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra `eval`")

pytestmark = pytest.mark.timeout(1200)  # each starts many processes, some of them Ray's

HERE = Path(__file__).parent
FEW = 24
"""Clips of a short run."""


def _script(name: str) -> ModuleType:
    sys.path.insert(0, str(HERE))
    try:
        spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(HERE))


def _fresh(root: Path) -> Iterator[Path]:
    return _script("harness").fresh_in(root)


def _kill_bare_drivers(root: Path, *, kills: int, seed: int, **settings: Any) -> Any:
    script, trial = _script("kill_driver"), _script("trial")
    bare, fresh = trial.Bare(**settings), _fresh(root)
    truth = trial.undisturbed(bare, next(fresh))
    return script.kill_drivers(bare, fresh, truth=truth, kills=kills, seed=seed)


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


@pytest.mark.slow
def test_the_control_doubles_rows_else_the_kills_prove_nothing(tmp_path: Path) -> None:
    script, trial = _script("kill_driver"), _script("trial")
    assert script.control(trial.Bare(n_rows=60), tmp_path, kills=1, seed=1) > 0


@pytest.mark.slow
def test_a_second_driver_of_a_run_is_refused_before_it_asks_anything(tmp_path: Path) -> None:
    trial, harness = _script("trial").Bare(n_rows=60), _script("harness")
    with harness.driver(tmp_path, "--stop-at", "written:1", *trial.options) as first:
        while not first.stopped:
            assert first.process.poll() is None, first.errors
            time.sleep(0.01)
        with harness.driver(tmp_path, *trial.options) as second:
            assert second.process.wait(timeout=120) == 1
        assert "another run writes it" in second.errors
        askers = {pid for _, pid in harness.asks_with_asker(tmp_path)}
        assert askers == {first.process.pid}
    harness.finish(tmp_path, *trial.options)
    assert len(trial.rows(tmp_path)) == 60
    assert trial.altered(tmp_path) == []


@pytest.mark.slow
def test_a_killed_child_leaves_a_failure_row_that_a_retry_replaces() -> None:
    script = _script("kill_worker")
    with script.open_trial("bare", "local", n_rows=60) as (trial, fresh):
        tally = script.kill_workers(trial, fresh, kills=3, seed=1)
    assert (tally.violations, tally.kills) == ([], 3)


@pytest.mark.slow
def test_a_row_that_kills_the_driver_each_time_is_quarantined_and_all_others_finish(
    tmp_path: Path,
) -> None:
    trial, driver = _script("trial").Bare(n_rows=40), _script("driver")
    keys = [row["key"] for row in driver.questions(40)]
    _script("kill_worker").mark(tmp_path, [keys[20]], "guilty")
    command = [sys.executable, str(HERE / "driver.py"), "--folder", str(tmp_path), *trial.options]
    codes: list[int] = []
    while not codes or codes[-1] != 0:
        assert len(codes) < 6
        codes.append(subprocess.run(command, check=False, capture_output=True).returncode)
    assert codes == [-signal.SIGKILL] * 2 + [0]
    rows = trial.rows(tmp_path)
    failed = {key: row["failure_reason"] for key, row in rows.items() if row["failure_reason"]}
    assert failed == {keys[20]: "quarantined"}
    assert len(rows) == 40


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", "ray"])
def test_kills_aimed_at_suspects_condemn_the_guilty_and_nobody_else(
    engine: str, tmp_path: Path
) -> None:
    pytest.importorskip(engine if engine == "ray" else "lance", reason="needs the extra `ray`")
    script = _script("kill_suspect")
    tally = script.kill_suspects(_fresh(tmp_path), engine=engine, kills=6, n_rows=60, seed=1)
    assert tally.violations == []
    assert tally.kills >= 6


@pytest.mark.slow
def test_a_rule_of_one_death_alone_condemns_innocents_else_the_kills_prove_nothing(
    tmp_path: Path,
) -> None:
    assert _script("kill_suspect").control(tmp_path, engine="local", n_rows=60, seed=1) > 0


@dataclass
class World:
    """Clips, a server, folders for runs, and what a run that nobody disturbs ends with."""

    trial: Any
    fresh: Iterator[Path]
    truth: Any
    keys: list[str]
    """Of the questions, in the order in which they were answered."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """`unreel eval` over a few real clips."""
    trials, root = _script("trial"), tmp_path_factory.mktemp("eval")
    fresh = _fresh(root)
    with trials.evaluation(root, n_clips=FEW) as trial:
        calm = next(fresh)
        truth = trials.undisturbed(trial, calm)
        rows = trial.rows(calm)
        assert len(trials.answered(rows)) == 2 * FEW
        keys = [key for key, row in rows.items() if "reviewer" in row]
        yield World(trial, fresh, truth, keys)


def _kill_eval(world: World, *, kills: int, **settings: Any) -> Any:
    trial = replace(world.trial, **settings)
    return _script("kill_driver").kill_drivers(
        trial, world.fresh, truth=world.truth, kills=kills, seed=1
    )


def test_a_killed_eval_ends_with_the_scorecard_of_an_undisturbed_one(world: World) -> None:
    stops = ["clips-written:2", "answers-written:2"]
    tally = _kill_eval(world, kills=2, stops=iter(stops))
    assert (tally.violations, tally.kills) == ([], 2)
    assert tally.asked_again > 0, "nothing was in flight at any kill: the steps are too tame"


@pytest.mark.slow
def test_an_eval_that_appends_plainly_doubles_answers(world: World) -> None:
    assert (
        _script("kill_driver").control(
            replace(world.trial, trusted=True), next(world.fresh), kills=1, seed=1
        )
        > 0
    )


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
    stops = iter(["answers-committed:1"])
    how = {"engine": "ray", "most_uncommitted": FEW, "trusted": True}
    tally = _kill_eval(world, kills=1, **how, stops=stops)
    assert (tally.violations, tally.kills) == ([], 1)


@pytest.mark.slow
def test_a_killed_decoder_costs_its_own_clip_alone_until_a_retry() -> None:
    script = _script("kill_worker")
    with script.open_trial("eval", "local", n_rows=FEW) as (trial, fresh):
        tally = script.kill_workers(trial, fresh, kills=2, seed=1)
    assert (tally.violations, tally.kills) == ([], 2)


@pytest.mark.slow
def test_a_ray_worker_killed_while_it_asks_costs_no_answer() -> None:
    pytest.importorskip("ray", reason="needs the extra `ray`")
    script = _script("kill_worker")
    with script.open_trial("eval", "ray", n_rows=FEW) as (trial, fresh):
        tally = script.kill_workers(trial, fresh, kills=1, seed=1)
    assert (tally.violations, tally.kills) == ([], 1)


def _give_up(world: World, folder: Path, *, engine: str) -> Any:
    """Kill whoever asks the marked question, each time, until a driver ends in peace."""
    harness, workers = _script("harness"), _script("kill_worker")
    trial, tally = replace(world.trial, engine=engine, trusted=True), harness.Tally()
    trial.prepare(folder)
    workers.mark(folder, [world.keys[FEW // 2]])
    for _ in range(5):
        with harness.driver(folder, *trial.options) as started:
            workers.kill_held(started, tally, by_port=True, forgive=False)
        if started.process.returncode == 0:
            break
    assert started.process.returncode == 0, started.errors
    rows = trial.rows(folder)
    failed = {key: row["failure_reason"] for key, row in rows.items() if row["failure_reason"]}
    assert failed == {world.keys[FEW // 2]: "quarantined"}
    assert len(rows) == 2 * FEW
    return tally


def _most_deaths() -> int:
    return int(_script("kill_suspect").MOST_KILLS) + 1


@pytest.mark.slow
def test_a_clip_that_kills_the_eval_each_time_is_quarantined_and_all_others_finish(
    world: World,
) -> None:
    assert _give_up(world, next(world.fresh), engine="local").kills == _most_deaths()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_clip_that_kills_its_ray_worker_each_time_is_quarantined(world: World) -> None:
    assert _give_up(world, next(world.fresh), engine="ray").kills == _most_deaths()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("stage", "engine", "kills", "more"),
    [
        ("bare", "local", 100, ()),
        ("eval", "local", 100, ()),
        ("eval", "local", 25, ("--retry",)),
        ("eval", "ray", 10, ()),
    ],
)
def test_very_many_driver_kills(stage: str, engine: str, kills: int, more: tuple[str, ...]) -> None:
    script = [sys.executable, str(HERE / "kill_driver.py"), "--stage", stage, "--engine", engine]
    subprocess.run([*script, "--kills", str(kills), *more], check=True)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("engine", ["local", "ray"])
@pytest.mark.parametrize("stage", ["bare", "eval"])
def test_a_hundred_worker_kills(stage: str, engine: str) -> None:
    script = [sys.executable, str(HERE / "kill_worker.py"), "--stage", stage, "--engine", engine]
    subprocess.run([*script, "--kills", "100"], check=True)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("engine", ["local", "ray"])
def test_two_hundred_kills_aimed_at_suspects(engine: str) -> None:
    script = [sys.executable, str(HERE / "kill_suspect.py"), "--engine", engine, "--kills", "200"]
    subprocess.run(script, check=True)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_twenty_kills_inside_compaction(tmp_path: Path) -> None:
    steps = ("rewritten", "compacted")
    tally = _kill_bare_drivers(tmp_path, n_rows=500, pace_rows=2, steps=steps, kills=20, seed=1)
    assert (tally.violations, tally.kills) == ([], 20)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_ten_driver_kills_in_a_store(world: World, s3: Any) -> None:
    tally = _kill_eval(world, kills=10, place=s3 / "slow")
    assert (tally.violations, tally.kills) == ([], 10)
