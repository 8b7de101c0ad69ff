"""Loading of local models, from safetensors only, with token positions as vLLM computes them.

No code from the model's folder runs.
"""

import inspect
from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from types import MethodType
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from transformers import AutoModelForImageTextToText, GenerationConfig
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VLModel

from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.reviewers.local.checkpoint import (
    ADAPTER,
    find_model_folder,
    read_checkpoint,
    read_model_config,
    require_safe_weights,
)

_KNOWN = frozenset({"c8ee3ef7bd02674546e45cd9715a86392618c4813ed06d8536cc2f7fcc43929b"})
"""SHA-256 hashes of the source of the method that is replaced, one for each reviewed version."""


def patch_rope_positions(model: torch.nn.Module) -> None:
    """Make every Qwen2.5-VL in `model` compute positions like vLLM; other models stay unchanged.

    Raise `InvalidSettingError` if the installed transformers has an unknown version of the method.
    """
    for inner in model.modules():
        if isinstance(inner, Qwen2_5_VLModel):
            require_known_rope_method(Qwen2_5_VLModel.get_rope_index)
            inner.get_rope_index = MethodType(_compute_rope_index, inner)


def require_known_rope_method(method: Any) -> None:
    """Raise if transformers' method of rope positions is not one that `patch_rope_positions` replaces.

    Raise `InvalidSettingError` if the installed transformers has an unknown version of the method.
    """
    source_hash = sha256(inspect.getsource(method).encode()).hexdigest()
    if source_hash not in _KNOWN:
        raise InvalidSettingError(
            "transformers",
            f"version {transformers.__version__} counts Qwen2.5-VL's positions in a way unknown here",
            "Install the version that unreel[local] names: pip install 'unreel[local]'",
        )


def _compute_rope_index(
    inner: Any,
    input_ids: torch.Tensor,
    mm_token_type_ids: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    **media: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return positions in time, height and width, and the offset of their end from the number of tokens."""
    vision = inner.config.vision_config
    films, seconds = _list_grid_rows(media.get("video_grid_thw")), media.get("second_per_grid_ts")
    paces = [
        vision.tokens_per_second * float(spacing)
        for spacing in ([1.0] * len(films) if seconds is None else list(seconds))
    ]
    merge = vision.spatial_merge_size
    pictures = _list_grid_rows(media.get("image_grid_thw"))
    blocks = {
        1: (_compute_media_rope_positions(grid, merge, 1.0) for grid in pictures),
        2: (
            _compute_media_rope_positions(grid, merge, pace)
            for grid, pace in zip(films, paces, strict=True)
        ),
    }
    positions = torch.zeros(3, *input_ids.shape, dtype=torch.long)
    deltas = []
    attended = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    for row, (types, mask) in enumerate(zip(mm_token_type_ids, attended.bool(), strict=True)):
        placed = _compute_row_rope_positions(types[mask].tolist(), blocks)
        positions[:, row, mask.cpu()] = placed
        deltas.append(int(placed.max()) + 1 - placed.shape[1])
    device = input_ids.device
    return positions.to(device), torch.tensor(deltas, device=device).unsqueeze(1)


def _compute_row_rope_positions(
    types: list[int], blocks: Mapping[int, Iterator[torch.Tensor]]
) -> torch.Tensor:
    """Compute the positions of one row; each text, image or video starts after the previous one."""
    spans, start = [], 0
    for kind, group in groupby(types):
        left = len(list(group))
        while left:
            span = next(blocks[kind]) if kind else torch.arange(left).expand(3, -1)
            spans.append(span + start)
            left -= span.shape[1]
            start = int(spans[-1].max()) + 1
    return torch.cat(spans, dim=1)


def _compute_media_rope_positions(grid: list[int], merge: int, pace: float) -> torch.Tensor:
    """Compute the rope positions within a picture or video, in double precision like the server."""
    times = (torch.arange(grid[0], dtype=torch.float64) * pace).long()
    rows, columns = (torch.arange(side // merge) for side in grid[1:])
    return torch.stack(torch.meshgrid(times, rows, columns, indexing="ij")).reshape(3, -1)


def _list_grid_rows(grids: torch.Tensor | None) -> list[list[int]]:
    return [] if grids is None else grids.tolist()


_HEAD = "lm_head.weight"
"""Output weights, which transformers initialises at random if they are missing and not tied to the input."""
_UNREADABLE = (ImportError, KeyError, OSError, RuntimeError, SafetensorError, TypeError, ValueError)


def load_local_model(folder: str | Path, *, device: str, dtype: torch.dtype) -> Any:
    """Load the model in `folder`, with its base model if it is an adapter.

    The model decodes greedily by default; the sampling settings in the folder are ignored. Raise
    `UnreadableSourceError` if the weights cannot be read, or are not safe to load, or
    `InvalidSettingError` if it is not a standard LoRA adapter, or its base model is unknown or
    differs.
    """
    path = find_model_folder(folder)
    if not (path / ADAPTER).is_file():
        return _load_full_model(path, dtype).to(device)
    checkpoint = read_checkpoint(path)
    if checkpoint.base is None:
        raise InvalidSettingError(
            "model",
            f"{path} is an adapter of no known model",
            "Name the model that it belongs on as `base` in unreel.json",
        )
    if (checkpoint.base / ADAPTER).is_file():
        # transformers would load the base of that adapter without these checks.
        raise InvalidSettingError(
            "model",
            f"the base of {path} is an adapter itself",
            "Merge that one first, and name the merged model",
        )
    return _attach_adapter(_load_full_model(checkpoint.base, dtype), path).to(device)


def _load_full_model(folder: Path, dtype: torch.dtype) -> Any:
    require_safe_weights(folder)
    try:
        model, loaded = AutoModelForImageTextToText.from_pretrained(
            folder,
            attn_implementation="sdpa",  # a config could name one to download
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
        raise UnreadableSourceError(
            str(folder),
            f"the weights lack {len(absent)} parts of the model, among them {absent[0]}",
            "Set tie_word_embeddings to true in its config.json if its owner ties them"
            if absent == [_HEAD]
            else "Write the whole checkpoint, or name its base for an adapter",
        )
    defaults = model.generation_config
    model.generation_config = GenerationConfig(
        eos_token_id=defaults.eos_token_id, pad_token_id=defaults.pad_token_id
    )
    patch_rope_positions(model)
    return model


def _attach_adapter(model: Any, folder: Path) -> Any:
    from peft import LoraConfig, PeftModel

    adapter = read_model_config(folder, ADAPTER)
    if adapter.get("peft_type") != "LORA" or adapter.get("megatron_config"):
        raise InvalidSettingError(
            "model", f"{folder} is not a standard LoRA adapter", "Merge it into its model"
        )
    try:
        config = LoraConfig.from_pretrained(str(folder))
        return PeftModel.from_pretrained(model, str(folder), config=config)
    except _UNREADABLE as error:
        raise _build_load_error(folder, error) from error


def _build_load_error(folder: Path, error: Exception) -> UnreadableSourceError:
    text = f"the weights cannot be loaded: {type(error).__name__}: {str(error)[:300]}"
    return UnreadableSourceError(str(folder), text, "Write the checkpoint again, or name another")
