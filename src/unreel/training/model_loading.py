"""The model that learns: loaded, frozen where the recipe says so, with adapters where it says so."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch
from peft import LoraConfig, PeftModel, get_peft_model

from unreel.core.errors import UnreadableSourceError
from unreel.reviewers.local.input_format import FamilyName
from unreel.reviewers.local.loading import load_model
from unreel.training.recipe import ModelSection

_EYES: Final[Mapping[FamilyName, tuple[str, ...]]] = {
    "qwen2.5-vl": ("visual",),
    "qwen3-vl": ("visual",),
    "videollama3": ("vision_model", "projector"),
}
"""The parts that see, with what carries their sight to the words."""


def prepare_model(section: ModelSection, start: Path, *, adapter: Path | None, seed: int) -> Any:
    """Load the model in `start` for training, with the adapter of a checkpoint if one is resumed."""
    dtype = torch.float32
    if section.tune == "lora" and section.precision == "bf16":
        dtype = torch.bfloat16  # Only the adapters learn, and they stay exact.
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = load_model(start, device=device, dtype=dtype)
    if section.tune == "full":
        if section.vision == "frozen":
            for name, weights in model.named_parameters():
                weights.requires_grad_(not is_vision_layer(name, section.family))
        return model
    if adapter is not None:
        return PeftModel.from_pretrained(model, str(adapter), is_trainable=True)
    torch.manual_seed(seed)
    return get_peft_model(model, build_lora_config(section, model))


def build_lora_config(section: ModelSection, model: Any) -> LoraConfig:
    """Build the config of adapters on every trainable linear layer except the output layer."""
    mouth = model.get_output_embeddings()
    names = [
        name
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear)
        and module is not mouth
        and (section.vision == "trained" or not is_vision_layer(name, section.family))
    ]
    if not names:
        problem = "has no layer that an adapter can be put on"
        raise UnreadableSourceError(section.name, problem, "Check [model] family, or tune = full")
    return LoraConfig(
        task_type="CAUSAL_LM",
        r=section.lora_rank,
        lora_alpha=section.lora_alpha,
        lora_dropout=section.lora_dropout,
        target_modules=names,
    )


def is_vision_layer(name: str, family: FamilyName) -> bool:
    """Return whether the layer or weight of that name belongs to the vision part."""
    return any(part in name.split(".") for part in _EYES[family])
