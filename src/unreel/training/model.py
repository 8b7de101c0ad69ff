"""Model of a training: the base model, loading for training, and sampling of its answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model

from unreel.core.content_ids import digest
from unreel.core.errors import UnreadableSourceError
from unreel.core.failure import Failure
from unreel.reviewers.contract import ReviewRequest
from unreel.reviewers.local.checkpoint import (
    CheckpointInputSpec,
    FamilyName,
    compute_weights_digest,
    find_model_folder,
)
from unreel.reviewers.local.encoder import RequestEncoder
from unreel.reviewers.local.loading import load_local_model
from unreel.training.model_card import read_model_licence
from unreel.training.recipe import TrainedModelSection, TrainRecipe


class AnswerSampler:
    """Sampler of a model's answers; samples depend only on the seed and the question.

    Args:
        model: A local model.
        encoder: Encoder of the model.
        max_tokens: Maximum number of tokens of an answer.
        temperature: Above 1 flattens the distribution; 0 is greedy.
        seed: Seed of all samples.
    """

    def __init__(
        self, model: Any, encoder: RequestEncoder, *, max_tokens: int, temperature: float, seed: int
    ) -> None:
        self._model, self._encoder = model, encoder
        self._max_tokens, self._temperature, self._seed = max_tokens, temperature, seed

    def draw(self, request: ReviewRequest, n: int) -> list[str] | Failure:
        """Sample `n` answers of the model to `request`; return a failure if the request cannot be encoded."""
        encoded = self._encoder.encode(request)
        if isinstance(encoded, Failure):
            return encoded
        batch = self._encoder.collate([encoded] * n, pad="left")
        device = next(self._model.parameters()).device
        how: dict[str, Any] = {"do_sample": False}
        if self._temperature > 0:
            how = {"do_sample": True, "temperature": self._temperature, "top_k": 0, "top_p": 1.0}
        was_training = self._model.training
        self._model.eval()
        with torch.inference_mode(), torch.random.fork_rng():
            torch.manual_seed(int(digest("draw", str(self._seed), request.key)[:15], 16))
            output = self._model.generate(
                **{name: values.to(device) for name, values in batch.items()},
                max_new_tokens=self._max_tokens,
                pad_token_id=self._encoder.pad_id,
                **how,
            )
        self._model.train(was_training)
        return [self._encoder.decode(row) for row in output[:, batch["input_ids"].shape[1] :]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseModelFolder:
    """The local folder of a base model, with its name, hash and licence."""

    name: str
    """Name of the model's folder, or its name on the Hugging Face Hub."""
    folder: Path
    digest: str
    licence: str
    """Licence that the model declares; "" if none."""


def find_base_model(section: TrainedModelSection) -> BaseModelFolder:
    """Find the model, a directory or download; raise `UnreadableSourceError` if not on this machine."""
    folder = find_model_folder(section.name, section.revision)
    return BaseModelFolder(
        name=folder.absolute().name if Path(section.name).is_dir() else section.name,
        folder=folder,
        digest=compute_weights_digest(folder),
        licence=read_model_licence(folder),
    )


def build_checkpoint_input_spec(recipe: TrainRecipe, base: BaseModelFolder) -> CheckpointInputSpec:
    """Return the input format of the trained checkpoint; that of a LoRA also names its base model."""
    if recipe.model.tune != "lora":
        return recipe.input_spec
    where = {"base": str(base.folder.absolute()), "base_digest": base.digest}
    return recipe.input_spec.model_copy(update=where)


_EYES: Mapping[FamilyName, tuple[str, ...]] = {
    "qwen2.5-vl": ("visual",),
    "qwen3-vl": ("visual",),
    "videollama3": ("vision_model", "projector"),
}
"""Modules of the vision encoder and of its projection to the language model, by model family."""


def load_trainable_model(
    section: TrainedModelSection, start: Path, *, adapter: Path | None, seed: int
) -> Any:
    """Load the model in `start` for training, with a new LoRA adapter or the given `adapter`."""
    dtype = torch.float32
    if section.tune == "lora" and section.precision == "bf16":
        dtype = torch.bfloat16  # Only the adapters are trained, and they stay in full precision.
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = load_local_model(start, device=device, dtype=dtype)
    if section.tune == "full":
        if section.vision == "frozen":
            for name, weights in model.named_parameters():
                weights.requires_grad_(not is_vision_layer(name, section.family))
        return model
    if adapter is not None:
        return PeftModel.from_pretrained(model, str(adapter), is_trainable=True)
    torch.manual_seed(seed)
    return get_peft_model(model, build_lora_config(section, model))


def build_lora_config(section: TrainedModelSection, model: Any) -> LoraConfig:
    """Build LoRA for all linear layers but the output; raise `UnreadableSourceError` if there is none."""
    mouth = model.get_output_embeddings()
    names = [
        name
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear)
        and module is not mouth
        and (section.vision == "trained" or not is_vision_layer(name, section.family))
    ]
    if not names:
        raise UnreadableSourceError(
            section.name,
            "has no layer that supports an adapter",
            "Check [model] family, or tune = full",
        )
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
