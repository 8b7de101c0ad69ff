"""Folders of models that name weights which could hold code, or lie elsewhere, are refused before they are loaded."""

import json
from pathlib import Path

import pytest

from unreel.core.errors import UnreadableSourceError
from unreel.reviewers.local.checkpoint import read_checkpoint, require_safe_weights

OUTSIDE = (
    "pytorch_model.bin",
    "../other/model.safetensors",
    "/tmp/model.safetensors",
    "sub/model.safetensors",
    "..\\model.safetensors",
    "model.safetensors\0.bin",
    "model.pt",
    7,
    None,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model in two parts, as transformers writes it."""
    model = tmp_path / "model"
    model.mkdir()
    for part in (1, 2):
        (model / f"model-{part}.safetensors").write_bytes(b"")
    (model / "config.json").write_text(json.dumps({"model_type": "qwen2_5_vl"}))
    write_index(model, "model-2.safetensors")
    return model


def write_index(model: Path, *files: object, name: str = "model") -> None:
    named = dict(enumerate(("model-1.safetensors", *files)))
    text = json.dumps({"metadata": {}, "weight_map": named})
    (model / f"{name}.safetensors.index.json").write_text(text)


@pytest.mark.parametrize("named", OUTSIDE)
def test_an_index_that_names_other_weights_is_refused(folder: Path, named: object) -> None:
    write_index(folder, named)
    with pytest.raises(UnreadableSourceError, match="no safetensors file of its folder"):
        read_checkpoint(folder)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weight_map": []}'])
def test_an_index_that_is_none_is_refused(folder: Path, text: str) -> None:
    (folder / "model.safetensors.index.json").write_text(text)
    with pytest.raises(UnreadableSourceError, match="no index of weights"):
        read_checkpoint(folder)


@pytest.mark.parametrize("named", ["../x.safetensors", "x.bin", "/x.safetensors.index.json", 7])
def test_a_config_that_names_other_weights_is_refused(folder: Path, named: object) -> None:
    config = {"model_type": "qwen2_5_vl", "transformers_weights": named}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(UnreadableSourceError, match="no safetensors file of its folder"):
        read_checkpoint(folder)


def test_an_adapter_with_pickled_weights_is_refused_beside_other_safetensors(
    tmp_path: Path,
) -> None:
    (tmp_path / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA"}))
    (tmp_path / "adapter_model.bin").write_bytes(b"")
    (tmp_path / "other.safetensors").write_bytes(b"")
    with pytest.raises(UnreadableSourceError, match="can contain code"):
        require_safe_weights(tmp_path)
    (tmp_path / "adapter_model.safetensors").write_bytes(b"")
    require_safe_weights(tmp_path)
