"""A recipe with `[reward]` starts from a checkpoint and leaves one that can be asked, or says why not."""

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
trl = pytest.importorskip("trl.import_utils")
pytest.importorskip("lance")

from training import lab
from unreel.core.errors import InvalidSettingError
from unreel.reviewers.local.checkpoint import read_checkpoint_input_spec
from unreel.reviewers.local.loading import load_local_model
from unreel.training.checkpoints import read_sealed_checkpoint
from unreel.training.model_card import read_model_card

trl.is_vllm_available = lambda *_, **__: False  # loading it takes half a minute
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.timeout(1800)]

PAID: dict[str, Any] = {
    "reward": {"generations": 2},
    "optimise": {"max_steps": 2, "batch_size": 2, "learning_rate": 1e-4, "workers": 0},
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lab.write_lab(tmp_path_factory.mktemp("lab"))


def test_grpo_leaves_a_whole_model_with_what_it_earned(root: Path, tmp_path: Path) -> None:
    trained = lab.run(root, tmp_path, **PAID)
    assert trained.ended == "done"
    assert trained.step == 2
    assert read_sealed_checkpoint(trained.model) is not None
    told = json.loads((trained.model / "reward.json").read_text())
    assert len(told["rewards"]) == 2
    assert set(told["terms"]) >= {"label", "box_bar", "false_alarm"}
    assert read_model_card(trained.model).recipe["reward"]["generations"] == 2
    load_local_model(trained.model, device="cpu", dtype=torch.float32)
    again = lab.run(root, tmp_path, **PAID)
    assert (again.model, again.step, again.loss) == (trained.model, 2, None)


def test_grpo_goes_on_with_an_adapter(root: Path, tmp_path: Path) -> None:
    lora = {"tune": "lora", "lora_rank": 2, "lora_alpha": 4}
    first = lab.run(root, tmp_path / "sft", model=lora, optimise={"max_steps": 1})
    start = lora | {"name": str(first.model)}
    kept_near = {**PAID, "reward": {"generations": 2, "kl": 0.1}}
    after = lab.run(root, tmp_path / "grpo", model=start, **kept_near)
    taught = read_checkpoint_input_spec(after.model)
    assert taught is not None
    assert taught.base == str((root / "base").absolute())
    assert not (after.model / "ref").exists()
    load_local_model(after.model, device="cpu", dtype=torch.float32)
    with pytest.raises(InvalidSettingError, match=r"model\.tune"):
        lab.run(root, tmp_path / "whole", model={"name": str(first.model)}, **PAID)


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"input": "video"}, "input"),
        ({"devices": {"strategy": "ddp", "count": 2}}, "devices.count"),
        ({"family": "videollama3"}, "model.family"),
    ],
)
def test_what_trl_cannot_do_is_refused_before_anything_is_read(
    changes: dict[str, Any], setting: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidSettingError, match=setting):
        lab.run(tmp_path / "absent", tmp_path / "out", **PAID, **changes)
