"""Arguments of transformers' trainers from a recipe, for supervised training and for rewards."""

from pathlib import Path
from typing import Any

import torch

from unreel.training.recipe import TrainRecipe


def build_trainer_arguments(recipe: TrainRecipe, folder: Path, *, n_steps: int) -> dict[str, Any]:
    """Build the arguments that supervised and reward training share, by transformers' names."""
    optimise, model = recipe.optimise, recipe.model
    is_warmed = optimise.schedule == "constant" and optimise.warmup > 0
    return {
        "output_dir": str(folder),
        "max_steps": n_steps,
        "per_device_train_batch_size": optimise.batch_size,
        "learning_rate": optimise.learning_rate,
        "lr_scheduler_type": "constant_with_warmup" if is_warmed else optimise.schedule,
        "warmup_steps": optimise.warmup,
        "weight_decay": optimise.weight_decay,
        "adam_beta1": optimise.betas[0],
        "adam_beta2": optimise.betas[1],
        "max_grad_norm": optimise.max_grad_norm,
        "seed": recipe.seed,
        "bf16": model.precision == "bf16",
        "use_cpu": not torch.cuda.is_available(),
        "gradient_checkpointing": model.gradient_checkpointing,
        "dataloader_pin_memory": torch.cuda.is_available(),
        "remove_unused_columns": False,
        "logging_steps": 1,
        "report_to": list(recipe.watch.log_to) or "none",
        "disable_tqdm": True,
        "trust_remote_code": False,
    }
