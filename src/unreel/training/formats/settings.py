"""Settings common to all trainers, in their spellings."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from unreel.training.recipe import TrainRecipe


def build_shared_arguments(recipe: TrainRecipe) -> dict[str, Any]:
    """Return the arguments of transformers that all of these trainers share."""
    optimise, watch = recipe.optimise, recipe.watch
    told: dict[str, Any] = {
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
        told["max_steps"] = optimise.max_steps
    return told


def write_yaml(values: Mapping[str, Any]) -> str:
    """Return flat `values` as YAML, one per line.

    Each value is written as JSON, which is also valid YAML, except for small numbers.
    """
    return "".join(f"{key}: {_format_yaml_scalar(value)}\n" for key, value in values.items())


def write_json(value: object) -> str:
    """Return `value` as one JSON document."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def write_lines(rows: Any) -> str:
    """Return one JSON document per line."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_flags(values: Mapping[str, Any]) -> str:
    """Return `values` as arguments for a shell script, one per line."""
    flags = [f"--{key} {shlex.quote(_format_plain_value(value))}" for key, value in values.items()]
    return " \\\n    ".join(flags)


def _format_plain_value(value: object) -> str:
    return str(value)


def _format_yaml_scalar(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and "e" in text and "." not in text:
        return text.replace("e", ".0e")  # YAML 1.1 reads 1e-05 as a word
    return text
