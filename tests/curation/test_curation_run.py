"""A whole curation: the same benchmark on each engine, after kills, and no work done twice."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from small_recipe import RECIPE
from unreel.benchmarks.loader import open_benchmark
from unreel.curation.curation_run import run_curation

# How busy this machine is must not decide which clips a benchmark has.
PATIENT = {"UNREEL_MEDIA_SECONDS": "600"}
DRIVER = Path(__file__).parent / "driver.py"

SECTIONS = {
    "split": {"shortest_s": "1/2"},
    "crop": {},
    "screen": {"screens": {"length": {}}},
    "lengths": {},
    "normalise": {"width": 96, "height": 64, "rate": 12},
}


@pytest.fixture
def recipe(tmp_path: Path, footage: Path) -> Path:
    file = tmp_path / "recipe.toml"
    file.write_text(RECIPE.format(footage=footage))
    return file


def drive(recipe: Path, out: Path, *options: str) -> str:
    """Let a driver run to its end; the digest of what it froze."""
    command = [sys.executable, str(DRIVER), str(recipe), str(out), *options]
    environment = os.environ | PATIENT  # noqa: TID251  handed on to a child
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()[-1].removeprefix("digest ")


def kill_at(recipe: Path, out: Path, *options: str) -> bool:
    """Kill -9 a driver once it stands where it was told to stop; False when it ended before."""
    command = [sys.executable, str(DRIVER), str(recipe), str(out), *options]
    environment = os.environ | PATIENT  # noqa: TID251  handed on to a child
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("stopped"):
                process.send_signal(signal.SIGKILL)
                break
        process.wait(timeout=240)
    return process.returncode == -signal.SIGKILL


@pytest.mark.timeout(900)
def test_a_killed_curation_goes_on_to_the_same_benchmark(recipe, tmp_path, tree) -> None:
    calm = drive(recipe, tmp_path / "calm", "--trusted")
    kills = [
        kill_at(recipe, tmp_path / "killed", "--trusted", "--stop-at", stop_at)
        for stop_at in ("committed:2", "written:4")
    ]
    assert all(kills)
    assert drive(recipe, tmp_path / "killed", "--trusted") == calm
    assert tree(tmp_path / "killed/benchmark") == tree(tmp_path / "calm/benchmark")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_local_and_ray_give_the_same_bytes(recipe, tmp_path, tree) -> None:
    pytest.importorskip("ray", reason="needs the extra ray: pip install 'unreel[ray]'")
    drive(recipe, tmp_path / "local", "--trusted")
    drive(recipe, tmp_path / "ray", "--trusted", "--engine", "ray")
    assert tree(tmp_path / "ray/benchmark") == tree(tmp_path / "local/benchmark")


def test_a_second_run_asks_nothing_and_a_changed_setting_only_what_depends_on_it(
    footage, curation
) -> None:
    source = {"path": str(footage)}
    job = curation(source, **SECTIONS)
    first = run_curation(job)
    counts = {step: job.context.table(step).count() for step in ("ingest", "scan", "render")}
    assert run_curation(job).frozen == first.frozen
    assert {step: job.context.table(step).count() for step in counts} == counts
    other = SECTIONS | {"normalise": {"width": 64, "height": 64, "rate": 12}}
    second = run_curation(curation(source, **other))
    assert second.frozen != first.frozen
    again = {step: job.context.table(step).count() for step in counts}
    assert again == counts | {"render": 2 * counts["render"]}


def test_normalised_clips_share_one_form_and_real_ones_the_generated_lengths(
    footage, curation
) -> None:
    job = curation({"path": str(footage)}, **SECTIONS)
    run_curation(job)
    entries = list(open_benchmark(job.context.place.path / "benchmark"))
    assert {(one.facts.width, one.facts.height, one.facts.rate) for one in entries} == {
        (96, 64, 12)
    }
    lengths = {
        label: {one.facts.duration_us for one in entries if one.label == label}
        for label in ("real", "generated")
    }
    assert lengths["real"] <= lengths["generated"]


def test_a_step_alone_goes_no_further(footage, curation) -> None:
    job = curation({"path": str(footage)}, **SECTIONS)
    state = run_curation(job, until="split")
    assert state.steps == ("ingest", "scan", "split")
    assert not (job.context.place.path / "benchmark").exists()
