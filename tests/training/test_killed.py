"""A training that was killed goes on as if it had not been."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("lance")

from reliability.disk import disk, fill
from training import lab
from unreel.training.checkpoints import TrainingCheckpointStore

__all__ = ["disk"]  # a fixture

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.timeout(1800)]

LAB = Path(lab.__file__)
ADAPTERS = {"model": {"tune": "lora", "lora_dropout": 0.2}}
"""Dropout draws: whoever goes on with other random numbers ends with another loss."""


def _start(root: Path, folder: Path, changes: dict[str, Any], *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(LAB), str(root), str(folder), json.dumps(changes), *more],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _left(session: int) -> list[int]:
    """Processes of that session that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, own = stat.read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(own) == session and state not in {"Z", "X"}:
            found.append(int(stat.parent.name))
    return found


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lab.write_lab(tmp_path_factory.mktemp("lab"))


@pytest.mark.slow
def test_killed_at_a_random_step_it_ends_with_the_loss_of_the_undisturbed(
    root: Path, tmp_path: Path
) -> None:
    undisturbed = lab.run(root, tmp_path / "whole", **ADAPTERS)
    killed_at = random.Random(os.getpid()).randint(2, 5)
    # Decoding in a process of its own changes nothing about what is learned.
    running = _start(root, tmp_path / "cut", ADAPTERS | {"optimise": {"workers": 1}})
    assert running.stdout is not None
    try:
        next(line for line in running.stdout if line.startswith(f"{killed_at} "))
    finally:
        running.kill()
        running.wait(60)
    running.stdout.close()
    trained = lab.run(root, tmp_path / "cut", **ADAPTERS)
    # Every second step is saved; the one that it was killed at may not have been.
    assert (trained.went_on_from or 0) in {killed_at, killed_at - 1, killed_at - 2}
    assert trained.loss == pytest.approx(undisturbed.loss, abs=1e-4)
    weights = [
        t.model.joinpath("adapter_model.safetensors").read_bytes() for t in (undisturbed, trained)
    ]
    assert weights[0] == weights[1]
    deadline = time.monotonic() + 60
    while (left := _left(running.pid)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left == [], "what decodes and what keeps must end with what trains"


def test_killed_while_a_checkpoint_is_written_the_one_before_is_used(
    root: Path, tmp_path: Path
) -> None:
    undisturbed = lab.run(root, tmp_path / "whole")
    cut = lab.run(root, tmp_path / "cut", optimise={"max_steps": 6}, stop_at=2)
    assert (cut.ended, TrainingCheckpointStore(tmp_path / "cut").newest().step) == ("asked", 2)
    running = _start(root, tmp_path / "cut", {}, str(random.Random(os.getpid()).randint(20, 30)))
    out, _ = running.communicate(timeout=200)
    assert running.returncode == -signal.SIGKILL, out
    assert [each.step for each in TrainingCheckpointStore(tmp_path / "cut").whole()] == [2]
    trained = lab.run(root, tmp_path / "cut")
    assert trained.went_on_from == 2
    assert trained.loss == pytest.approx(undisturbed.loss, abs=1e-4)
    assert not list((tmp_path / "cut" / "checkpoints").glob(".unreel-*"))


def test_a_second_training_in_the_same_folder_is_refused(root: Path, tmp_path: Path) -> None:
    from unreel.core.errors import UnreadableSourceError
    from unreel.training.run import TrainingCallbacks

    def intrude(_step: int, _loss: float, _vigil: object) -> None:
        with pytest.raises(UnreadableSourceError, match="another run writes it"):
            lab.run(root, tmp_path)

    trained = lab.run(
        root, tmp_path, optimise={"max_steps": 1}, callbacks=TrainingCallbacks(on_step=intrude)
    )
    assert trained.ended == "done"


def test_a_full_disk_is_told_and_the_last_checkpoint_stays_whole(root: Path, disk: Path) -> None:
    from unreel.core.errors import MachineError
    from unreel.training.run import TrainingCallbacks

    ballast: list[Path] = []

    def fill_up(step: int, _loss: float, _vigil: object) -> None:
        if step == 3:
            ballast.append(fill(disk))

    with pytest.raises(MachineError, match="step 4 cannot be written") as told:
        lab.run(root, disk / "out", callbacks=TrainingCallbacks(on_step=fill_up), **ADAPTERS)
    assert "step-000002 is whole" in str(told.value)
    assert "Make room" in str(told.value)
    ballast[0].unlink()
    assert lab.run(root, disk / "out", **ADAPTERS).went_on_from == 2
