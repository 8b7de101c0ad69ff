"""Settings that all exported trainers share, written in their formats, and their resize rules."""

import json
import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from unreel.core.errors import InvalidValueError
from unreel.core.input_files import RECIPE_BYTES, parse_json_object, read_limited_bytes
from unreel.reviewers.endpoint.model_families import FrameResizeRule
from unreel.reviewers.local.input_format import FamilyName
from unreel.training.example_cost import SIGHT
from unreel.training.recipe import TrainRecipe

_PUBLISHED: Final = (4, 16384)
"""Minimum and maximum number of tokens of an image or frame in the published processors."""
_FILES: Final = {
    "image": ("preprocessor_config.json", "processor_config.json"),
    "video": (
        "video_preprocessor_config.json",
        "preprocessor_config.json",
        "processor_config.json",
    ),
}


def get_token_side_pixels(family: FamilyName) -> int:
    """Return the side length in pixels of the image area that becomes one token."""
    rule = SIGHT[family, "frames"]
    return rule.patch * rule.merge


def read_processor_resize_rule(
    family: FamilyName, folder: Path | None, half: str
) -> FrameResizeRule:
    """Return the resize rule for `half` (`image`, `video`), by the model's or the published processor."""
    unit = get_token_side_pixels(family)
    low, high = (tokens * unit**2 for tokens in _PUBLISHED)
    for name in _FILES[half] if folder else ():
        bounds = _read_pixel_bounds(folder / name, half) if folder else None
        if bounds is not None:
            low, high = bounds
            break
    return FrameResizeRule(multiple=unit, min_pixels=low, max_pixels=high)


def compute_llamafactory_size(width: int, height: int, *, low: int, high: int) -> tuple[int, int]:
    """Compute LLaMA-Factory's own earlier resize: limited area, rounded down, sides of 28 or more."""
    for limit, is_wrong in ((high, width * height > high), (low, width * height < low)):
        if is_wrong:
            scale = math.sqrt(limit / (width * height))
            width, height = int(width * scale), int(height * scale)
    smallest = 28
    if min(width, height) < smallest:
        width, height = max(width, smallest), max(height, smallest)
    return width, height


def _read_pixel_bounds(file: Path, half: str) -> tuple[int, int] | None:
    if not file.is_file():
        return None
    try:
        document: Mapping[str, Any] = parse_json_object(read_limited_bytes(file, most=RECIPE_BYTES))
    except InvalidValueError:
        return None
    inner = document.get(f"{half}_processor")
    document = inner if isinstance(inner, Mapping) else document
    size = document.get("size")
    size = size if isinstance(size, Mapping) else {}
    pair = (
        size.get("shortest_edge", document.get("min_pixels")),
        size.get("longest_edge", document.get("max_pixels")),
    )
    low, high = (value if isinstance(value, int) else 0 for value in pair)
    return (low, high) if 0 < low <= high else None


def build_shared_trainer_arguments(recipe: TrainRecipe) -> dict[str, Any]:
    """Build the transformers arguments that all supported trainers share."""
    optimise, watch = recipe.optimise, recipe.watch
    arguments: dict[str, Any] = {
        "per_device_train_batch_size": optimise.batch_size,
        "gradient_accumulation_steps": optimise.accumulate,
        "learning_rate": optimise.learning_rate,
        "lr_scheduler_type": "constant_with_warmup"
        if optimise.schedule == "constant"
        else optimise.schedule,
        "warmup_ratio": optimise.warmup,
        "weight_decay": optimise.weight_decay,
        "adam_beta1": optimise.betas[0],
        "adam_beta2": optimise.betas[1],
        "max_grad_norm": optimise.max_grad_norm,
        "num_train_epochs": optimise.epochs,
        "bf16": recipe.model.precision == "bf16",
        "seed": recipe.seed % 2**31,
        "logging_steps": 1,
        "save_steps": watch.save_every,
        "save_total_limit": watch.keep,
        "dataloader_num_workers": optimise.workers,
        "report_to": "none",
        "output_dir": "checkpoints",
    }
    if optimise.max_steps is not None:
        arguments["max_steps"] = optimise.max_steps
    return arguments


def format_flat_yaml(values: Mapping[str, Any]) -> str:
    """Return `values` as YAML lines, each value as JSON, which is YAML too, except small numbers."""
    return "".join(f"{key}: {_format_yaml_scalar(value)}\n" for key, value in values.items())


def format_json_document(value: object) -> str:
    """Format `value` as one indented JSON document."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def format_json_lines(rows: Any) -> str:
    """Format `rows` as JSON Lines: one JSON document per line."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def format_shell_flags(values: Mapping[str, Any]) -> str:
    """Format `values` as command-line flags for a shell script, one per line."""
    flags = [f"--{key} {shlex.quote(_format_flag_value(value))}" for key, value in values.items()]
    return " \\\n    ".join(flags)


def _format_flag_value(value: object) -> str:
    return str(value)


def _format_yaml_scalar(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and "e" in text and "." not in text:
        return text.replace("e", ".0e")  # YAML 1.1 parses 1e-05 as a string
    return text
