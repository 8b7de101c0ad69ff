"""Positions of the text after a video, as the server counts them.

transformers 5.6 to 5.22 starts the text after a video of Qwen2.5-VL max(height, width) after the
video's first position, regardless of the video's length; vLLM, and transformers before, start it
after the video's last. A model that is trained one way and served the other behaves differently.
See decision 0027.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from types import MethodType
from typing import Any, Final

import torch
import transformers
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VLModel

from unreel.core.errors import InvalidSettingError

_KNOWN: Final = frozenset({"c8ee3ef7bd02674546e45cd9715a86392618c4813ed06d8536cc2f7fcc43929b"})
"""Digests of the method that is replaced: one for each way in which it was written and looked through."""


def patch_positions(model: torch.nn.Module) -> None:
    """Make every Qwen2.5-VL within `model` count positions like the server; others are unchanged.

    Raises:
        InvalidSettingError: This version of transformers was not examined.
    """
    for inner in model.modules():
        if isinstance(inner, Qwen2_5_VLModel):
            require_known(Qwen2_5_VLModel.get_rope_index)
            inner.get_rope_index = MethodType(_compute_rope_index, inner)


def require_known(method: Any) -> None:
    """Raise for a method that differs from the one that the fix replaces."""
    found = sha256(inspect.getsource(method).encode()).hexdigest()
    if found not in _KNOWN:
        problem = f"version {transformers.__version__} counts Qwen2.5-VL's positions in a way unknown here"
        remedy = "Install the version that unreel[local] names: pip install 'unreel[local]'"
        setting = "transformers"
        raise InvalidSettingError(setting, problem, remedy)


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
        vision.tokens_per_second * float(each)
        for each in _fill_missing_seconds(seconds, len(films))
    ]
    merge = vision.spatial_merge_size
    blocks = {
        1: iter(
            [
                _compute_block_positions(grid, merge, 1.0)
                for grid in _list_grid_rows(media.get("image_grid_thw"))
            ]
        ),
        2: iter(
            [
                _compute_block_positions(grid, merge, pace)
                for grid, pace in zip(films, paces, strict=True)
            ]
        ),
    }
    positions = torch.zeros(3, *input_ids.shape, dtype=torch.long)
    deltas = []
    kept = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    for row, (types, mask) in enumerate(zip(mm_token_type_ids, kept.bool(), strict=True)):
        placed = _compute_row_positions(types[mask].tolist(), blocks)
        positions[:, row, mask.cpu()] = placed
        deltas.append(int(placed.max()) + 1 - placed.shape[1])
    device = input_ids.device
    return positions.to(device), torch.tensor(deltas, device=device).unsqueeze(1)


def _compute_row_positions(
    types: list[int], blocks: Mapping[int, Iterator[torch.Tensor]]
) -> torch.Tensor:
    """Compute the positions of one row; each part starts after the highest position before it."""
    spans, start = [], 0
    for kind, group in groupby(types):
        left = len(list(group))
        while left:
            span = next(blocks[kind]) if kind else torch.arange(left).expand(3, -1)
            spans.append(span + start)
            left -= span.shape[1]
            start = int(spans[-1].max()) + 1
    return torch.cat(spans, dim=1)


def _compute_block_positions(grid: list[int], merge: int, pace: float) -> torch.Tensor:
    """Compute positions within a picture or video, in double precision like the server."""
    times = (torch.arange(grid[0], dtype=torch.float64) * pace).long()
    rows, columns = (torch.arange(side // merge) for side in grid[1:])
    return torch.stack(torch.meshgrid(times, rows, columns, indexing="ij")).reshape(3, -1)


def _fill_missing_seconds(seconds: Any, n: int) -> Sequence[Any]:
    return [1.0] * n if seconds is None else list(seconds)


def _list_grid_rows(grids: torch.Tensor | None) -> list[list[int]]:
    return [] if grids is None else grids.tolist()
