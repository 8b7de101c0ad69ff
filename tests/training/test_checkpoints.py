"""A checkpoint is there whole, or the one before it is used."""

import json
from pathlib import Path

import pytest

from unreel.core.errors import UnsafeTargetError
from unreel.training.checkpoints import (
    SEAL,
    TrainingCheckpointStore,
    format_checkpoint_name,
    read_sealed_checkpoint,
)


def _write(checkpoints: TrainingCheckpointStore, step: int, text: str = "weights") -> Path:
    draft = checkpoints.begin(format_checkpoint_name(step), inner="training")
    (draft / "model.safetensors").write_text(f"{text} {step}")
    (draft / "training" / "optimizer.pt").write_text("state")
    return checkpoints.finish(format_checkpoint_name(step), step=step).path


def test_the_newest_sealed_checkpoint_is_read(tmp_path: Path) -> None:
    checkpoints = TrainingCheckpointStore(tmp_path)
    assert checkpoints.newest() is None
    for step in (2, 10, 100):
        _write(checkpoints, step)
    newest = checkpoints.newest()
    assert newest is not None
    assert (newest.step, newest.path.name) == (100, "step-000100")


@pytest.mark.parametrize("damage", ["cut", "gone", "changed", "no seal", "not json", "climbs"])
def test_a_checkpoint_that_lost_bytes_is_passed_over(damage: str, tmp_path: Path) -> None:
    checkpoints = TrainingCheckpointStore(tmp_path)
    _write(checkpoints, 10)
    last = _write(checkpoints, 20)
    weights, seal = last / "model.safetensors", last / SEAL
    match damage:
        case "cut":
            weights.write_text("wei")
        case "gone":
            (last / "training" / "optimizer.pt").unlink()
        case "changed":
            weights.write_text("weights 21")
        case "no seal":
            seal.unlink()
        case "not json":
            seal.write_text(seal.read_text()[:-20])
        case "climbs":
            seal.write_text(json.dumps({"step": 20, "files": {"../../../etc/passwd": "0"}}))
    assert read_sealed_checkpoint(last) is None
    assert checkpoints.newest() == checkpoints.at(10)


def test_the_newest_and_the_best_are_kept(tmp_path: Path) -> None:
    checkpoints = TrainingCheckpointStore(tmp_path)
    for step in (10, 20, 30, 40):
        _write(checkpoints, step)
    checkpoints.prune(keep=2, best=10)
    assert [each.step for each in checkpoints.whole()] == [40, 30, 10]


def test_a_link_in_a_draft_is_not_sealed(tmp_path: Path) -> None:
    checkpoints = TrainingCheckpointStore(tmp_path)
    draft = checkpoints.begin(format_checkpoint_name(10))
    (draft / "model.safetensors").symlink_to("/etc/hostname")
    with pytest.raises(UnsafeTargetError):
        checkpoints.finish(format_checkpoint_name(10), step=10)
    assert checkpoints.newest() is None


def test_taking_checkpoints_away_follows_no_link(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("stays")
    checkpoints = TrainingCheckpointStore(tmp_path / "training")
    (_write(checkpoints, 10) / "link").symlink_to(elsewhere)
    checkpoints.clear()
    assert (elsewhere / "precious").read_text() == "stays"
    assert checkpoints.newest() is None
