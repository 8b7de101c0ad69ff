"""The token limit of a checkpoint travels with it, and a set limit replaces it."""

import json
from pathlib import Path

import pytest

from unreel.evaluation.recipe import validate_eval_recipe
from unreel.reviewers.local.checkpoint import (
    MAX_TOKENS,
    CheckpointInputSpec,
    read_checkpoint,
    write_checkpoint_input_spec,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "dtr"
    path.mkdir()
    (path / "model.safetensors").write_bytes(b"weights")
    (path / "config.json").write_text('{"model_type": "qwen2_5_vl"}')
    return path


def _spec(max_tokens: int | None = None) -> CheckpointInputSpec:
    return CheckpointInputSpec(
        family="qwen2.5-vl", input="frames", box_space="model-input", max_tokens=max_tokens
    )


def test_a_checkpoint_is_asked_with_its_own_limit(folder: Path) -> None:
    write_checkpoint_input_spec(_spec(), folder)
    before = read_checkpoint(folder)
    write_checkpoint_input_spec(_spec(512), folder)
    after = read_checkpoint(folder)
    assert (before.max_tokens, after.max_tokens) == (MAX_TOKENS, 512)
    assert after.reviewer_name(max_tokens=512, box_space=None) == before.name == after.name
    assert after.reviewer_name(max_tokens=64, box_space=None) == f"{after.name}?max_tokens=64"


def test_a_run_stores_the_limit_of_a_checkpoint_only_if_it_was_set(folder: Path) -> None:
    keys = {"benchmark": "b", "protocol": "trace", "model": f"local/{folder}"}
    assert "max_tokens" not in validate_eval_recipe(keys).stored()
    assert validate_eval_recipe(keys | {"max_tokens": 64}).stored()["max_tokens"] == 64
    stored = validate_eval_recipe(keys | {"model": "vllm/x"}).stored()
    assert json.loads(json.dumps(stored))["max_tokens"] == 2048
