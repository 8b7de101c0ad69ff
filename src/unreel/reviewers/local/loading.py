"""Weights on a device: safetensors alone, no code of the folder's, positions as the server counts them."""

from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError
from transformers import AutoModelForImageTextToText, GenerationConfig

from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.reviewers.local.checkpoint import (
    ADAPTER,
    locate_model,
    read_checkpoint,
    read_config,
    require_weights,
)
from unreel.reviewers.local.positions import patch_positions

_UNREADABLE: Final = (
    ImportError,
    KeyError,
    OSError,
    RuntimeError,
    SafetensorError,
    TypeError,
    ValueError,
)


def load_model(folder: str | Path, *, device: str, dtype: torch.dtype) -> Any:
    """Load the model in `folder`, with its base if it is an adapter, for inference or training.

    It decodes greedily by default: its own sampling settings are ignored.

    Raises:
        UnreadableSourceError: The weights cannot be read, or are not safe to load.
        InvalidSettingError: It is not an adapter of this kind, or belongs to other weights.
    """
    place = locate_model(folder)
    if not (place / ADAPTER).is_file():
        return _load_whole(place, dtype).to(device)
    found = read_checkpoint(place)
    if found.base is None:
        setting, remedy = "model", "Name the model that it belongs on as `base` in unreel.json"
        raise InvalidSettingError(setting, f"{place} is an adapter of no known model", remedy)
    if (found.base / ADAPTER).is_file():
        # transformers would load what that one names, by rules of its own.
        setting, remedy = "model", "Merge that one first, and name the merged model"
        raise InvalidSettingError(setting, f"the base of {place} is an adapter itself", remedy)
    return _put_adapter(_load_whole(found.base, dtype), place).to(device)


def _load_whole(folder: Path, dtype: torch.dtype) -> Any:
    require_weights(folder)
    try:
        model, loaded = AutoModelForImageTextToText.from_pretrained(
            folder,
            attn_implementation="sdpa",  # a folder could name one that is fetched
            dtype=dtype,
            local_files_only=True,
            output_loading_info=True,
            trust_remote_code=False,
            use_safetensors=True,
        )
    except torch.OutOfMemoryError:
        raise
    except _UNREADABLE as error:
        raise _build_load_error(folder, error) from error
    if absent := sorted({*loaded["missing_keys"], *map(str, loaded["mismatched_keys"])}):
        problem = f"its weights lack {len(absent)} parts of the model, among them {absent[0]}"
        remedy = "Write the whole checkpoint, or name its base for an adapter"
        raise UnreadableSourceError(str(folder), problem, remedy)
    said = model.generation_config
    model.generation_config = GenerationConfig(
        eos_token_id=said.eos_token_id, pad_token_id=said.pad_token_id
    )
    patch_positions(model)
    return model


def _put_adapter(model: Any, folder: Path) -> Any:
    from peft import LoraConfig, PeftModel

    told = read_config(folder, ADAPTER)
    if told.get("peft_type") != "LORA" or told.get("megatron_config"):
        problem, remedy = f"{folder} is no plain LoRA adapter", "Merge it into its model"
        setting = "model"
        raise InvalidSettingError(setting, problem, remedy)
    try:
        config = LoraConfig.from_pretrained(str(folder))
        return PeftModel.from_pretrained(model, str(folder), config=config)
    except _UNREADABLE as error:
        raise _build_load_error(folder, error) from error


def _build_load_error(folder: Path, error: Exception) -> UnreadableSourceError:
    words = f"its weights cannot be loaded: {type(error).__name__}: {str(error)[:300]}"
    return UnreadableSourceError(str(folder), words, "Write the checkpoint again, or name another")
